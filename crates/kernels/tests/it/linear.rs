//! The linear kernel.

use crate::testing::refused;
use bochner_kernels::{Kernel, Lengthscale, LinearConfig};
use ndarray::array;

#[test]
fn no_nan_comes_out_of_finite_points() {
    let of = |lengthscale| {
        let lengthscale = Lengthscale::Shared(lengthscale);
        LinearConfig { lengthscale }.build()
    };
    assert_eq!(refused(of(1e-320)), "lengthscale");
    assert_eq!(refused(of(7.4e-155)), "lengthscale");
    let mut kernel = of(7.5e-155).unwrap();
    assert_eq!(refused(kernel.set_parameters(&[1e-160])), "lengthscale");
    assert_eq!(kernel.lengthscale(), &Lengthscale::Shared(7.5e-155));

    let (x, y) = (array![[1e200, 1e200]], array![[1e200, -1e200]]);
    let (x, y, one) = (x.view(), y.view(), array![[1.0]]);
    let sum = "x . y / lengthscale^2";
    assert_eq!(refused(kernel.gram(x, y)), sum);
    assert_eq!(kernel.gram(x, x).unwrap(), array![[f64::INFINITY]]);
    for kernel in [kernel, of(1.0).unwrap()] {
        assert_eq!(refused(kernel.gram_vjp(x, y, one.view())), sum);
    }
}

#[test]
fn every_dimension_has_its_own_lengthscale() {
    let lengthscale = Lengthscale::PerDimension(vec![1.0, 2.0]);
    let kernel = LinearConfig { lengthscale }.build().unwrap();
    let (x, y) = (array![[1.0, 2.0], [0.0, 4.0]], array![[3.0, -2.0]]);
    // The first inputs stand in column-major order.
    let k = kernel.gram(x.t().to_owned().t(), y.view()).unwrap();
    assert_eq!(k, array![[2.0], [-2.0]]);
}
