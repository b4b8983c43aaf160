//! What can go wrong, and what to do about it.

use thiserror::Error;

/// An error of this crate.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum Error {
    /// Two arrays do not fit together.
    #[error(
        "{what} must have shape {expected:?}, but has {got:?}; check the order of the axes \
         (batch, heads, draws, width; factors: batch, width, heads, heads)"
    )]
    ShapeMismatch {
        /// The argument.
        what: &'static str,
        /// The shape that the other arguments call for.
        expected: Vec<usize>,
        /// The shape given.
        got: Vec<usize>,
    },
    /// An axis has length zero.
    #[error("{what} has shape {shape:?}; every axis needs at least one element")]
    Empty {
        /// The argument.
        what: &'static str,
        /// Its shape.
        shape: Vec<usize>,
    },
    /// A factor's diagonal is not positive.
    #[error(
        "{what}, matrix {matrix}: the diagonal entry of row {row} must be positive, but is {got}; \
         a correlation factor is lower-triangular with a positive diagonal"
    )]
    Diagonal {
        /// The argument.
        what: &'static str,
        /// Which matrix of the stack.
        matrix: usize,
        /// The row.
        row: usize,
        /// The entry.
        got: f64,
    },
    /// A factor has an entry that is not a finite number.
    #[error(
        "{what}, matrix {matrix}: row {row} has an entry that is not finite; look for an overflow \
         where the factor is made, or for a training step that diverged"
    )]
    NonFinite {
        /// The argument.
        what: &'static str,
        /// Which matrix of the stack.
        matrix: usize,
        /// The row.
        row: usize,
    },
    /// A matrix is not square.
    #[error("{what} must be a square matrix, but has {rows} rows and {columns} columns")]
    NotSquare {
        /// The argument.
        what: &'static str,
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
    },
    /// An entry is not a finite number.
    #[error("{what}: the entry in row {row}, column {column} must be finite, but is {got}")]
    NotFinite {
        /// The argument.
        what: &'static str,
        /// The row.
        row: usize,
        /// The column.
        column: usize,
        /// The entry.
        got: f64,
    },
    /// A matrix is not symmetric.
    #[error(
        "{what} must be symmetric, but has {lower} in row {row}, column {column}, and {upper} \
         mirrored; take the mean of the two, or pass the triangular factor as such"
    )]
    NotSymmetric {
        /// The argument.
        what: &'static str,
        /// The row, the larger of the two indices.
        row: usize,
        /// The column.
        column: usize,
        /// The entry below the diagonal.
        lower: f64,
        /// Its mirror image.
        upper: f64,
    },
    /// A correlation matrix has something other than one on its diagonal.
    #[error(
        "{what}: a correlation matrix has ones on its diagonal, but row {row} has {got}; divide a \
         covariance matrix by the standard deviations of its rows and columns"
    )]
    UnitDiagonal {
        /// The argument.
        what: &'static str,
        /// The row.
        row: usize,
        /// The entry.
        got: f64,
    },
    /// A matrix is not positive definite.
    #[error(
        "{what} must be positive definite, but elimination meets the pivot {pivot:e} in row {row}, \
         and the smallest eigenvalue is {smallest:e}; `nearest_correlation` gives the closest \
         matrix that is"
    )]
    NotPositiveDefinite {
        /// The argument.
        what: &'static str,
        /// The first row that depends on those before it.
        row: usize,
        /// What is left of its diagonal entry.
        pivot: f64,
        /// The smallest eigenvalue of the matrix.
        smallest: f64,
    },
    /// A parameter lies outside of its range.
    #[error("{what} must be {expected}, but is {got}")]
    OutOfRange {
        /// The parameter.
        what: &'static str,
        /// Its range, in words.
        expected: &'static str,
        /// The value.
        got: f64,
    },
    /// A uniform score lies outside of the unit interval.
    #[error(
        "u, row {row}, coordinate {coordinate}: uniform scores lie strictly between 0 and 1, but \
         this one is {got}; `pseudo_observations` turns data into such scores"
    )]
    Score {
        /// The row.
        row: usize,
        /// The coordinate.
        coordinate: usize,
        /// The score.
        got: f64,
    },
    /// A coordinate that is to be conditioned on does not exist, or is given twice.
    #[error(
        "coordinate {coordinate} is given, but every coordinate given must be below {dimension} \
         and occur once"
    )]
    Coordinate {
        /// The coordinate.
        coordinate: usize,
        /// How many there are.
        dimension: usize,
    },
    /// A joint distribution does not have one marginal for each coordinate of its copula.
    #[error("a copula of {dimension} coordinates needs as many marginals, but {got} were given")]
    Marginals {
        /// The copula's coordinates.
        dimension: usize,
        /// The marginals.
        got: usize,
    },
    /// A marginal distribution returned something that is no density or probability.
    #[error(
        "the {function} of marginal {coordinate} is {got} at {at}; the distribution's parameters \
         are beyond what its implementation can evaluate"
    )]
    Marginal {
        /// Which marginal.
        coordinate: usize,
        /// Which of its functions.
        function: &'static str,
        /// The argument.
        at: f64,
        /// The value.
        got: f64,
    },
    /// There are too few observations to see a dependence.
    #[error("at least two observations are needed, but {got} were given")]
    TooFew {
        /// The observations.
        got: usize,
    },
    /// A column of the observations is constant.
    #[error(
        "column {column} of the observations is constant: no rank correlation is defined with it; \
         leave it out"
    )]
    Constant {
        /// The column.
        column: usize,
    },
    /// An iteration did not arrive.
    #[error("{what} did not converge: after {iterations} iterations the residual is {residual:e}")]
    NoConvergence {
        /// The iteration.
        what: &'static str,
        /// How many were done.
        iterations: usize,
        /// What is left.
        residual: f64,
    },
}

/// `Ok` if `got == expected`.
pub(crate) fn same_shape(
    what: &'static str,
    expected: &[usize],
    got: &[usize],
) -> Result<(), Error> {
    if expected == got {
        Ok(())
    } else {
        Err(Error::ShapeMismatch {
            what,
            expected: expected.to_vec(),
            got: got.to_vec(),
        })
    }
}

/// `Ok` if no axis of `shape` has length zero.
pub(crate) fn not_empty(what: &'static str, shape: &[usize]) -> Result<(), Error> {
    if shape.contains(&0) {
        Err(Error::Empty {
            what,
            shape: shape.to_vec(),
        })
    } else {
        Ok(())
    }
}
