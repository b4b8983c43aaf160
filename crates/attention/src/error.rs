//! Errors of attention, each with its remedy.

use bochner_numerics::ArgumentError;
use bochner_numerics::argument::in_range;
use thiserror::Error;

/// An error of this crate.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument has the wrong shape or size, or lies outside its range.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// A mechanism cannot do what is asked of it, or two settings do not go together.
    #[error("{what} is not supported; use {instead}")]
    Unsupported {
        /// The combination.
        what: &'static str,
        /// The alternative.
        instead: &'static str,
    },
    /// No mechanism of the registry has this name.
    #[error(
        "no mechanism is called `{given}`: there are {}; one of another crate must be registered first",
        known.join(", ")
    )]
    UnknownMechanism {
        /// The name that was given.
        given: String,
        /// The names there are.
        known: Vec<&'static str>,
    },
    /// The name of a mechanism of another crate has no prefix.
    #[error("the mechanism of another crate is called `{given}`; its name must be `mycrate/name`")]
    MechanismName {
        /// The name that was given.
        given: &'static str,
    },
    /// Two types were registered under one name.
    #[error("another mechanism is registered as `{name}`; give this one another name")]
    RegisteredTwice {
        /// The name.
        name: &'static str,
    },
    /// A mask, or the counts of a step, do not fit the sequences.
    #[error("the {what} must be {expected}, not {got}")]
    Mask {
        /// The part of the mask, or the counts.
        what: &'static str,
        /// The value that the sequences require.
        expected: String,
        /// The value that was given.
        got: String,
    },
    /// A mechanism was given another number of streams than its card names.
    #[error("the mechanism takes {expected} streams, not {got}; `streams` of its card names them")]
    StreamCount {
        /// The number that it takes.
        expected: usize,
        /// The number that was given.
        got: usize,
    },
    /// A saved forward pass of another mechanism or call was given to the backward pass.
    #[error(
        "the forward pass given to {mechanism} is not one of its own; pass what its attend returned"
    )]
    ForeignForward {
        /// The mechanism.
        mechanism: &'static str,
    },
    /// A number left the range of its type.
    #[error(
        "the {what} overflows; rescale the inputs and the parameters, or compute in double precision"
    )]
    Overflow {
        /// The name of the numbers.
        what: &'static str,
    },
    /// From the engine.
    #[error(transparent)]
    Engine(bochner_engine::Error),
    /// From the feature maps.
    #[error(transparent)]
    Kernels(#[from] bochner_kernels::Error),
    /// From the spectral densities.
    #[error(transparent)]
    Spectral(#[from] bochner_spectral::Error),
    /// From the copula.
    #[error(transparent)]
    Copula(#[from] bochner_copula::Error),
    /// From the layers on the tape.
    #[cfg(feature = "dfdx")]
    #[error(transparent)]
    Nn(bochner_nn::Error),
}

impl From<bochner_engine::Error> for Error {
    /// Takes the errors that both crates have over as they are.
    fn from(error: bochner_engine::Error) -> Self {
        use bochner_engine::Error as Engine;
        match error {
            Engine::Argument(error) => Self::Argument(error),
            Engine::Unsupported { what, instead } => Self::Unsupported { what, instead },
            Engine::Saved { .. } => Self::ForeignForward {
                mechanism: "attention",
            },
            Engine::Mask {
                what,
                expected,
                got,
            } => Self::Mask {
                what,
                expected,
                got,
            },
            error => Self::Engine(error),
        }
    }
}

#[cfg(feature = "dfdx")]
impl From<bochner_nn::Error> for Error {
    /// Takes this crate's own error back out, if it is one that came through the tape.
    fn from(error: bochner_nn::Error) -> Self {
        error.into_operation_error().unwrap_or_else(Self::Nn)
    }
}

/// Refuses a floor that cannot be added to a squared kernel, which is 1 at most.
pub(crate) fn floor(value: f64) -> Result<(), ArgumentError> {
    in_range((0.0..=1.0).contains(&value), "floor", value, "from 0 to 1")
}

/// Refuses a factor of inner products that single precision could round to zero or to infinity.
pub(crate) fn scale(value: f64) -> Result<(), ArgumentError> {
    let holds = (1e-30..=1e30).contains(&value);
    in_range(holds, "scale", value, "from 1e-30 to 1e30")
}
