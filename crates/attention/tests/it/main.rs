//! The properties of attention, of its mechanisms and of its layer.

mod bipolar;
mod cat;
mod conformance;
/// Private functions of whole numbers, with their tests.
#[path = "../../src/gamma.rs"]
mod gamma;
#[cfg(feature = "dfdx")]
mod layer;
mod performer;
mod primal;
mod random_features;

use bochner_attention::Error;

/// Whether an error is one of this argument, here or in the source of spectral points.
fn names(error: &Error, argument: &str) -> bool {
    match error {
        Error::Argument(error) => error.name() == argument,
        Error::Spectral(bochner_spectral::Error::Argument(error)) => error.name() == argument,
        _ => false,
    }
}
