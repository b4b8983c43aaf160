//! The sum of kernels.

use crate::testing::{gradients_agree, parts, refused, values_are_replaced_or_refused};
use bochner_kernels::{Kernel, Sum};
use bochner_numerics::check::random;
use ndarray::Array2;

#[test]
fn it_is_the_sum() {
    let (x, y) = (random((4, 3), "x"), random((5, 3), "y"));
    let sum = Sum::new(parts()).unwrap().gram(x.view(), y.view()).unwrap();
    let each = parts().into_iter();
    let want = each.fold(Array2::<f64>::zeros((4, 5)), |sum, part| {
        sum + part.gram(x.view(), y.view()).unwrap()
    });
    assert_eq!(sum, want);
}

#[test]
fn gradients_agree_with_finite_differences() {
    let mut kernel = Sum::new(parts()).unwrap();
    gradients_agree(&mut kernel, &random((4, 3), "x"), &random((5, 3), "y"));
    values_are_replaced_or_refused(&mut kernel);
}

#[test]
fn there_is_no_empty_sum() {
    assert_eq!(refused(Sum::<f64>::new(Vec::new())), "parts");
}
