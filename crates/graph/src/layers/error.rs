//! The errors of layers.

use crate::Error;
use bochner_numerics::ArgumentError;

/// An error of a trainable layer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// The attention along edges refused its arguments.
    #[error(transparent)]
    Graph(#[from] Error),
    /// The source of spectral points refused its arguments.
    #[error(transparent)]
    Spectral(#[from] bochner_spectral::Error),
    /// The layer cannot do what is asked of it.
    #[cfg(feature = "dfdx")]
    #[error("{what} is not supported; use {instead}")]
    Unsupported {
        /// The combination.
        what: &'static str,
        /// The alternative.
        instead: &'static str,
    },
    /// The tape refused a tensor.
    #[cfg(feature = "dfdx")]
    #[error(transparent)]
    Nn(bochner_nn::Error),
}

impl From<ArgumentError> for LayerError {
    fn from(error: ArgumentError) -> Self {
        Self::Graph(error.into())
    }
}

#[cfg(feature = "dfdx")]
impl From<bochner_nn::Error> for LayerError {
    /// Takes this crate's own error back out, if it is one that came through the tape.
    fn from(error: bochner_nn::Error) -> Self {
        error.into_operation_error().unwrap_or_else(Self::Nn)
    }
}
