//! The errors of kernels, features and bounds.

use bochner_numerics::ArgumentError;

/// Why a kernel, its features or a bound on their error could not be computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument has the wrong shape, is empty, lies outside its range or is not finite.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// A kernel is not positive semi-definite on points of this width.
    #[error(
        "the {kernel} kernel is not positive semi-definite on {width} columns, so that it is no covariance \
         there: give it a lengthscale for each column"
    )]
    Indefinite {
        /// The kernel.
        kernel: &'static str,
        /// The number of columns.
        width: usize,
    },
}
