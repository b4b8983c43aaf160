//! What can go wrong, and what to do about it.

/// Why a process could not be built, conditioned or trained.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two arrays do not fit together.
    #[error(
        "`{what}` has shape {got:?} where {expected:?} was expected: inputs are [n, d] with one target for each row, and the parameters are those of `parameters()`"
    )]
    ShapeMismatch {
        /// The argument.
        what: &'static str,
        /// The shape that the other arguments call for.
        expected: Vec<usize>,
        /// The shape given.
        got: Vec<usize>,
    },
    /// Something that must be there at least once is not there.
    #[error("`{what}` is empty: give at least one")]
    Empty {
        /// The argument.
        what: &'static str,
    },
    /// An entry is not a finite number.
    #[error(
        "`{what}` has {got} at {index:?}, but must be finite: leave incomplete rows out; if it is `gram`, the inputs are too large for the kernel's parameters"
    )]
    NotFinite {
        /// The array.
        what: &'static str,
        /// Where in it.
        index: Vec<usize>,
        /// The entry.
        got: f64,
    },
    /// A parameter lies outside its range.
    #[error("`{what}` is {got}, but must be {required}")]
    OutOfRange {
        /// The parameter.
        what: &'static str,
        /// What holds for a valid value.
        required: &'static str,
        /// The value given.
        got: f64,
    },
    /// A covariance matrix is not numerically positive definite, even with the jitter.
    #[error(
        "the covariance matrix of order {order} is not positive definite: with the jitter {jitter:e} on its diagonal, the pivot of row {row} is {pivot:e}; look for inputs that repeat or all but repeat, and give more noise or jitter"
    )]
    NotPositiveDefinite {
        /// The rows of the matrix.
        order: usize,
        /// The largest jitter tried.
        jitter: f64,
        /// The first row whose pivot is not positive.
        row: usize,
        /// What is left of its diagonal entry.
        pivot: f64,
    },
    /// The kernel refused its inputs or parameters.
    #[error(transparent)]
    Kernel(#[from] bochner_kernels::Error),
}
