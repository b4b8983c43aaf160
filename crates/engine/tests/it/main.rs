//! The properties of the engine.

mod built_in;
mod errors;
mod examples;
mod kernels;
mod masks;
mod numbers;
mod same_bits;

use bochner_engine::conformance::{Failure, Trial, agree, check};

/// The result of a test: the first property that does not hold.
type Outcome = Result<(), Failure>;

/// Checks both precisions.
fn conforms(double: Trial<f64>, single: Trial<f32>) -> Outcome {
    check(&double)?;
    check(&single)?;
    agree(&double, &single)
}
