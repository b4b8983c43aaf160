//! The radial basis function, or squared exponential.

use crate::testing::{gradients_agree, refused, values_are_replaced_or_refused};
use bochner_kernels::{Kernel, Lengthscale, RbfConfig};
use bochner_numerics::check::random;
use ndarray::{Array2, array};

#[test]
fn gradients_agree_with_finite_differences() {
    let lengthscales = [
        Lengthscale::Shared(0.7),
        Lengthscale::PerDimension(vec![0.7, 1.9, 0.4]),
    ];
    for lengthscale in lengthscales {
        let mut kernel = RbfConfig { lengthscale }.build().unwrap();
        gradients_agree(&mut kernel, &random((4, 3), "x"), &random((5, 3), "y"));
        values_are_replaced_or_refused(&mut kernel);
    }
}

#[test]
fn every_dimension_has_its_own_lengthscale() {
    let lengthscale = Lengthscale::PerDimension(vec![1.0, 2.0]);
    let kernel = RbfConfig { lengthscale }.build().unwrap();
    let k = kernel.gram(array![[1.0, 2.0]].view(), array![[0.0, 0.0]].view());
    assert_eq!(k.unwrap(), array![[(-1.0_f64).exp()]]);
}

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
