//! The errors of this crate.

use bochner_numerics::ArgumentError;

/// Why a matrix could not be factorised or decomposed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument has another shape than it must have, is out of range, or is not finite.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// A matrix is not symmetric.
    #[error(
        "`{name}` must be symmetric, but has {lower:?} in row {row}, column {column}, and {upper:?} \
         mirrored: take the mean of the two if the difference is an error of rounding"
    )]
    NotSymmetric {
        /// The argument.
        name: &'static str,
        /// The row, the larger of the two indices.
        row: usize,
        /// The column.
        column: usize,
        /// The entry below the diagonal.
        lower: f64,
        /// Its mirror image.
        upper: f64,
    },
    /// A symmetric matrix is not numerically positive definite.
    #[error(
        "a matrix of {order} rows is not positive definite: elimination meets the pivot {pivot:e} in \
         row {row}; look for rows that repeat, or add a small number to the diagonal"
    )]
    NotPositiveDefinite {
        /// The rows of the matrix.
        order: usize,
        /// The first row whose pivot is not positive.
        row: usize,
        /// The pivot, the rest of the row's diagonal entry after elimination.
        pivot: f64,
    },
    /// An iteration for eigenvalues or singular values did not converge.
    #[error(
        "the {what} of a matrix of shape {shape:?} did not converge: rescale the matrix so that the \
         squares of its entries neither overflow nor underflow"
    )]
    NoConvergence {
        /// The name of the result.
        what: &'static str,
        /// The shape of the matrix.
        shape: [usize; 2],
    },
}
