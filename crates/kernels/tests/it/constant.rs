//! The constant kernel.

use crate::testing::{gradients_agree, refused, values_are_replaced_or_refused};
use bochner_kernels::{ConstantConfig, Kernel};
use bochner_numerics::check::random;
use ndarray::Array2;

#[test]
fn it_is_the_same_everywhere() {
    let kernel = ConstantConfig { variance: 1.7 }.build().unwrap();
    let (x, y) = (random((4, 3), "x"), random((5, 3), "y"));
    let want = Array2::from_elem((4, 5), 1.7);
    assert_eq!(kernel.gram(x.view(), y.view()).unwrap(), want);
}

#[test]
fn gradients_agree_with_finite_differences() {
    let mut kernel = ConstantConfig { variance: 1.7 }.build().unwrap();
    gradients_agree(&mut kernel, &random((4, 3), "x"), &random((5, 3), "y"));
    values_are_replaced_or_refused(&mut kernel);
    assert_eq!(
        refused(ConstantConfig { variance: 0.0 }.build()),
        "variance"
    );
}
