//! The radial basis function, or squared exponential.

use crate::testing::refused;
use bochner_kernels::{Kernel, Lengthscale, RbfConfig};
use bochner_numerics::check::random;
use ndarray::Array2;

#[test]
fn arguments_that_do_not_fit_are_named() {
    let lengthscale = Lengthscale::Shared(1.0);
    let kernel = RbfConfig { lengthscale }.build().unwrap();
    let (x, narrow) = (random((2, 3), "x"), random((2, 2), "y"));
    assert_eq!(refused(kernel.gram(x.view(), narrow.view())), "y");
    assert_eq!(
        refused(kernel.gram_vjp(x.view(), x.view(), x.view())),
        "cotangent"
    );
    let none = Array2::<f64>::zeros((2, 0));
    assert_eq!(refused(kernel.gram(none.view(), none.view())), "x");
    let said = kernel
        .gram(none.view(), none.view())
        .unwrap_err()
        .to_string();
    assert!(
        said.starts_with("`x` has shape [2, 0] and so no elements"),
        "{said}"
    );
}
