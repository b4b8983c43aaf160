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
    /// From a mechanism's spectral points.
    #[error(transparent)]
    Attention(#[from] bochner_attention::Error),
    /// From the tape.
    #[error(transparent)]
    Nn(bochner_nn::Error),
}

impl From<ArgumentError> for LayerError {
    fn from(error: ArgumentError) -> Self {
        Self::Graph(error.into())
    }
}

impl From<bochner_nn::Error> for LayerError {
    /// Takes this crate's own error back out, if it is one that came through the tape.
    fn from(error: bochner_nn::Error) -> Self {
        error.into_operation_error().unwrap_or_else(Self::Nn)
    }
}
