//! What can go wrong in a layer, an optimiser or a checkpoint.

use crate::CheckpointError;
use dfdx::tensor::CpuError;

/// The error of an analytic operation: whatever its crate returns.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// Why a layer, an optimiser or a loss refused to go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An array's shape is not the one needed.
    #[error("{what} has shape {got:?}, expected {expected:?}; give it the expected shape")]
    ShapeMismatch {
        /// Which array.
        what: &'static str,
        /// The shape needed.
        expected: Vec<usize>,
        /// The shape given.
        got: Vec<usize>,
    },

    /// An array has no elements.
    #[error("{what} must have at least one element, but has none")]
    Empty {
        /// Which array, in the singular; an input or output of an operation with its place and shape.
        what: String,
    },

    /// A number is outside its range.
    #[error("{what} is {got}, but must be {requirement}")]
    OutOfRange {
        /// Which number.
        what: &'static str,
        /// The value given.
        got: f64,
        /// The range, in words.
        requirement: &'static str,
    },

    /// An index points behind the end.
    #[error("{index} in {what} is too large: there are only {len} {of}; indices start at 0")]
    IndexOutOfBounds {
        /// Which set of indices.
        what: &'static str,
        /// The offending index.
        index: usize,
        /// What the indices count.
        of: &'static str,
        /// The number of these.
        len: usize,
    },

    /// An operation produced another number of outputs than its caller asked for.
    #[error("the operation {operation} returned {got} outputs, but {expected} were asked for")]
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

    /// A gradient contains NaN or infinity.
    #[error(
        "the gradient of {parameter} is {value} at element {index}; nothing was changed: lower the \
         learning rate or look for the operation that overflows"
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
