//! The properties of the engine.

mod any_settings;
mod biases;
mod built_in;
mod conformance;
mod decoding;
mod errors;
mod errors_of_features;
mod errors_of_scans;
mod examples;
mod kernels;
mod mask_formulas;
mod masks;
mod numbers;
mod positions;
mod same_bits;

use bochner_engine::conformance::{Failure, Trial, agree, check};

/// The result of a test: the first property that does not hold.
type Outcome = Result<(), Failure>;

/// Checks double precision, and that single precision agrees with it.
fn conforms(double: Trial<f64>, single: Trial<f32>) -> Outcome {
    check(&double)?;
    agree(&double, &single)
}
