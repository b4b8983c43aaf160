//! The Gaussian density, behind the RBF kernel.

use crate::testing::refused;
use bochner_kernels::GaussianDensity;

#[test]
fn standard_deviations_that_are_not_positive_are_refused() {
    for std in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(refused(GaussianDensity::new(vec![1.0, std])), "std");
    }
    assert_eq!(refused(GaussianDensity::<f64>::new(Vec::new())), "std");
}
