//! Errors of layers, optimisers and checkpoints.

use crate::{CheckpointError, WeightsError};
use bochner_numerics::ArgumentError;
use bochner_ops::BoxError;
use dfdx::tensor::CpuError;

/// The reason that a layer, an optimiser or a loss refused to go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument has a wrong shape, no elements, or a value that is not allowed.
    #[error(transparent)]
    Argument(#[from] ArgumentError),

    /// An operation produced another number of outputs than its caller asked for.
    #[error(
        "the operation {operation} returned {got} outputs, but {expected} were asked for: take as many as it returns"
    )]
    OutputCount {
        /// The operation's type.
        operation: &'static str,
        /// The number asked for.
        expected: usize,
        /// The number returned.
        got: usize,
    },

    /// An analytic operation failed in its forward pass.
    #[error("the operation {operation} failed: {source}")]
    Operation {
        /// The operation's type.
        operation: &'static str,
        /// The operation's own error.
        source: BoxError,
    },

    /// A gradient is NaN or infinite, or its square is.
    #[error(
        "the gradient of {parameter} is {value:?} at element {index}, and it or its square is not finite; \
         nothing was changed: clip gradients, lower the learning rate or look for the operation that overflows"
    )]
    NonFiniteGradient {
        /// The parameter's name.
        parameter: String,
        /// The position of the first offending element.
        index: usize,
        /// Its value.
        value: f64,
    },

    /// The state of an optimiser belongs to a model with other parameters.
    #[error(
        "the optimiser's state holds {got} numbers for {parameter}, which has {expected}; restore \
         the state that belongs to this model"
    )]
    ForeignState {
        /// The parameter's name.
        parameter: String,
        /// Number of elements in the model.
        expected: usize,
        /// Number of elements in the state.
        got: usize,
    },

    /// A checkpoint could not be written or read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),

    /// The weights of another library do not fit, or could not be read or written.
    #[error(transparent)]
    Weights(#[from] WeightsError),

    /// The device refused.
    #[error("the device refused: {0}")]
    Device(CpuError),
}

impl From<CpuError> for Error {
    fn from(error: CpuError) -> Self {
        Self::Device(error)
    }
}

impl Error {
    /// The error of the operation that was recorded, if it is an `S`; otherwise this error again.
    ///
    /// # Errors
    /// The error itself, if it is not that of an operation's forward pass, or not an `S`.
    pub fn into_operation_error<S: std::error::Error + 'static>(self) -> Result<S, Self> {
        match self {
            Self::Operation { operation, source } => match source.downcast() {
                Ok(own) => Ok(*own),
                Err(source) => Err(Self::Operation { operation, source }),
            },
            error => Err(error),
        }
    }

    /// The nearest error of dfdx, for its `Module` traits; the details are lost.
    ///
    /// dfdx's containers demand one error type of all their parts, and it has two values.
    pub fn into_device_error(self) -> CpuError {
        match self {
            Self::Device(error) => error,
            _ => CpuError::WrongNumElements,
        }
    }
}
