//! The product of kernels.

use bochner_kernels::{AnyKernel, Kernel, Lengthscale, LinearConfig, Product, RbfConfig};
use ndarray::array;

#[test]
fn a_factor_that_is_zero_still_has_a_gradient() {
    let linear = |l| -> AnyKernel<f64> {
        let lengthscale = Lengthscale::Shared(l);
        LinearConfig { lengthscale }.build().unwrap().into()
    };
    let kernel = Product::new(vec![linear(1.0), linear(0.5)]).unwrap();
    let (x, y, one) = (array![[1.0, 1.0]], array![[1.0, -1.0]], array![[1.0]]);
    let vjp = kernel.gram_vjp(x.view(), y.view(), one.view()).unwrap();
    // The two factors are zero, and so is the gradient of their product.
    assert_eq!(vjp.x, array![[0.0, 0.0]]);
    // With one that is not, the gradient is that one's value times the slope.
    let rbf = RbfConfig {
        lengthscale: Lengthscale::Shared(1.0),
    };
    let rbf: AnyKernel<f64> = rbf.build().unwrap().into();
    let kernel = Product::new(vec![linear(1.0), rbf]).unwrap();
    let vjp = kernel.gram_vjp(x.view(), y.view(), one.view()).unwrap();
    assert_eq!(vjp.x, &y * (-2.0_f64).exp());
    let wide = array![[1.0, 1.0, 0.0]];
    assert!(kernel.gram_vjp(x.view(), wide.view(), one.view()).is_err());
}
