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
    /// A file was written by another version of this crate.
    #[error(
        "the file has the version {got} of the format, but this program reads version {known}: use the \
         version of bochner-gp that wrote it"
    )]
    Version {
        /// The version of the file.
        got: u32,
        /// The version that is read.
        known: u32,
    },
    /// A file has a kernel that this version does not know.
    #[error(
        "the file has the kernel `{got}`, but this program knows {}: use the version of bochner-gp that wrote it",
        known.join(", ")
    )]
    UnknownKernel {
        /// The name in the file.
        got: String,
        /// The names that are known.
        known: &'static [&'static str],
    },
    /// A file cannot be read: it is no JSON, a field is missing or unknown, or a value is refused.
    #[error("the file cannot be read: {reason}; compare it with a file that this version writes")]
    File {
        /// The line, from 1; 0 for the file as a whole.
        line: usize,
        /// The column, from 1; 0 for the file as a whole.
        column: usize,
        /// The reason, with the place.
        reason: String,
    },
    /// A fixed parameter or a prior names a hyper-parameter that the process does not have.
    #[error("there is no hyper-parameter `{got}`: the process has {}", known.join(", "))]
    UnknownParameter {
        /// The name that was given.
        got: String,
        /// The names of the hyper-parameters.
        known: Vec<String>,
    },
    /// No step of a fit improved on its start, which is no maximum.
    #[error(
        "no step of the fit improved on ln p = {log_likelihood} at the start, where the gradient has the \
         norm {gradient_norm:e}: start closer to the scales of the data, as the presets do, or give more noise \
         or jitter"
    )]
    NoImprovement {
        /// The logarithm of the marginal likelihood at the start, or the bound on it.
        log_likelihood: f64,
        /// The Euclidean norm of the gradient there.
        gradient_norm: f64,
    },
    /// There are more inducing points than observations.
    #[error(
        "there are {inducing} inducing points for {rows} observations: give at most as many as there are \
         observations, or use the exact process"
    )]
    InducingPoints {
        /// The number of inducing points.
        inducing: usize,
        /// The number of observations.
        rows: usize,
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
