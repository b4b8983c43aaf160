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
    /// A matrix could not be decomposed.
    #[error(transparent)]
    Dense(#[from] bochner_dense::Error),
    /// The modalities do not partition the tokens.
    #[error(
        "token {token} appears {times} times among the positions of the modalities, but must appear once: give each \
         token to vision, to text or to the padding"
    )]
    NotPartitioned {
        /// The first such token.
        token: usize,
        /// How often it appears.
        times: usize,
    },
    /// No token is left beside the padding.
    #[error(
        "all tokens are padding, so that there is no attention to share out; leave such examples out"
    )]
    OnlyPadding,
}
