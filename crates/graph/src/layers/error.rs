//! What can be wrong with a layer.

use crate::Error;
use bochner_numerics::ArgumentError;

/// An error of a trainable layer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// From the attention along edges.
    #[error(transparent)]
    Graph(#[from] Error),
    /// From the source of spectral points.
    #[error(transparent)]
    Spectral(#[from] bochner_spectral::Error),
    /// From the tape.
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
