//! The errors of this crate.

use bochner_numerics::ArgumentError;
use thiserror::Error;

/// An error of this crate.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument has a wrong shape, no elements, or a value that is not allowed.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// No pair is kept, so that there is nothing to take a mean over.
    #[error("the mask keeps no pair of a query and a key; leave such batches out of the trace")]
    NothingKept,
    /// The attention refused the mask or the magnitude.
    #[error(transparent)]
    Attention(#[from] bochner_attention::Error),
    /// The spectral points do not fit the queries and keys.
    #[error(transparent)]
    Kernel(#[from] bochner_kernels::Error),
}
