//! The errors of this crate.

use bochner_numerics::ArgumentError;

/// Why a process could not be built, conditioned or trained.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument has another shape than it must have, is empty, out of its range or not finite.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// A matrix that was changed by the caller is no covariance.
    #[error(transparent)]
    Dense(#[from] bochner_dense::Error),
    /// The kernel refused its inputs or parameters.
    #[error(transparent)]
    Kernel(#[from] bochner_kernels::Error),
    /// A covariance is NaN or infinite.
    #[error(
        "the covariance in row {row}, column {column} is {got:?}, but must be finite: scale the inputs \
         down, or look at the parameters of the kernel"
    )]
    Covariance {
        /// The row of the covariance matrix.
        row: usize,
        /// The column.
        column: usize,
        /// The entry.
        got: f64,
    },
    /// A covariance matrix is not numerically positive definite, even with the jitter.
    #[error(
        "the covariance matrix of {order} values is not positive definite: with the jitter {jitter:e} \
         on its diagonal, elimination meets the pivot {pivot:e} in row {row}; look for inputs that \
         repeat or all but repeat, and give more noise or jitter"
    )]
    NotPositiveDefinite {
        /// The rows of the matrix.
        order: usize,
        /// The largest jitter tried.
        jitter: f64,
        /// The first row whose pivot is not positive.
        row: usize,
        /// The pivot, the rest of the row's diagonal entry after elimination.
        pivot: f64,
    },
    /// A coordinate leads to a hyper-parameter outside its domain.
    #[error(
        "the coordinate of `{parameter}` is {got:?}, but the parameter that it stands for must be finite, \
         and above 0 if the coordinate is a logarithm: if a step of a fit led there, lower the learning \
         rate"
    )]
    Coordinate {
        /// The hyper-parameter.
        parameter: String,
        /// The coordinate.
        got: f64,
    },
}
