//! Helpers of the tests.
#![allow(dead_code, reason = "each test file uses its own part")]

use bochner_nn::Element;
use bochner_numerics::{Seed, standard_normal};
use dfdx::prelude::*;

/// Standard normal draws.
pub(crate) fn random<E: Element, S: Shape>(shape: S, purpose: &str) -> Tensor<S, E, Cpu> {
    let mut stream = Seed::new(1).stream(purpose);
    let values = (0..shape.num_elements())
        .map(|_| standard_normal(&mut stream))
        .collect();
    Cpu::default().tensor_from_vec(values, shape)
}

/// The elements of a contiguous tensor, in double precision.
pub(crate) fn values<E: Element, S: Shape, T>(tensor: &Tensor<S, E, Cpu, T>) -> Vec<f64> {
    let mut values = vec![E::default(); tensor.shape().num_elements()];
    tensor.copy_into(&mut values);
    values.into_iter().map(|x| x.as_f64()).collect()
}

/// Fails unless the two agree as vectors.
#[track_caller]
pub(crate) fn close(got: &[f64], want: &[f64], tolerance: f64) {
    let error = bochner_numerics::relative_error(got, want);
    assert!(error < tolerance, "relative error {error:e}");
}
