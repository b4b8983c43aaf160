//! The errors of this crate.

use bochner_numerics::ArgumentError;
use thiserror::Error;

/// An error of this crate.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument has another shape than it must have, is empty, out of its range or not finite.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// A matrix is not symmetric, or has no eigenvalues that could be found.
    #[cfg(feature = "distributions")]
    #[error(transparent)]
    Dense(#[from] bochner_dense::Error),
    /// A factor's diagonal is not positive.
    #[error(
        "`{name}`, matrix {matrix}: the diagonal entry of row {row} is {got:?}, but must be above 0; \
         a correlation factor is lower-triangular with a positive diagonal"
    )]
    Diagonal {
        /// The argument.
        name: &'static str,
        /// The index of the matrix in the stack.
        matrix: usize,
        /// The row.
        row: usize,
        /// The entry.
        got: f64,
    },
    /// A correlation matrix has an entry other than one on its diagonal.
    #[error(
        "`{name}` has {got:?} on the diagonal of row {row}, but a correlation matrix has 1 there: divide \
         a covariance matrix by the standard deviations of its rows and columns"
    )]
    UnitDiagonal {
        /// The argument.
        name: &'static str,
        /// The row.
        row: usize,
        /// The entry.
        got: f64,
    },
    /// A matrix is not positive definite.
    #[error(
        "`{name}` must be positive definite, but elimination meets the pivot {pivot:e} in row {row}, \
         and the smallest eigenvalue is {smallest:e}: `nearest_correlation` gives the closest \
         matrix that is positive definite"
    )]
    NotPositiveDefinite {
        /// The argument.
        name: &'static str,
        /// The row where elimination ends.
        row: usize,
        /// The pivot, the rest of the row's diagonal entry after elimination.
        pivot: f64,
        /// The smallest eigenvalue of the matrix.
        smallest: f64,
    },
    /// A uniform score lies outside the unit interval.
    #[error(
        "`u` is {got:?} in row {row}, coordinate {coordinate}, but uniform scores lie strictly between \
         0 and 1: `pseudo_observations` turns data into such scores"
    )]
    Score {
        /// The row.
        row: usize,
        /// The coordinate.
        coordinate: usize,
        /// The score.
        got: f64,
    },
    /// A coordinate is given twice.
    #[error("coordinate {coordinate} is given twice: give each coordinate at most once")]
    Repeated {
        /// The coordinate.
        coordinate: usize,
    },
    /// A value lies outside the support of its marginal.
    #[error(
        "coordinate {coordinate} is given as {got:?}, but its marginal has the support from {low:?} to \
         {high:?}: give a value that a draw can have"
    )]
    Support {
        /// The coordinate.
        coordinate: usize,
        /// The value given.
        got: f64,
        /// The lower end of the support.
        low: f64,
        /// The upper end of the support.
        high: f64,
    },
    /// A marginal distribution returned something that is no density or probability.
    #[error(
        "the {function} of marginal {coordinate} is {got:?} at {at:?}: give the distribution \
         parameters that its implementation can evaluate"
    )]
    Marginal {
        /// The coordinate of the marginal.
        coordinate: usize,
        /// The name of its function.
        function: &'static str,
        /// The argument.
        at: f64,
        /// The value.
        got: f64,
    },
    /// There are too few observations to see a dependence.
    #[error(
        "dependence shows in two observations or more, but the number given is {got}: give more rows"
    )]
    TooFew {
        /// The number of observations.
        got: usize,
    },
    /// A value is none that a distribution of a family has.
    #[cfg(feature = "distributions")]
    #[error(
        "the family {family:?} cannot be fitted to {got:?} in row {row}: its values are {allowed}; fit another \
         family, or leave the row out"
    )]
    Family {
        /// The family.
        family: crate::Family,
        /// The row of the first such value.
        row: usize,
        /// The value.
        got: f64,
        /// The values that the family has, in words that follow "are".
        allowed: &'static str,
    },
    /// A column has so many ties that it is no sample of a continuous distribution.
    #[error(
        "column {column} has {distinct} different values in {rows} rows and is discrete, so that normal scores and \
         likelihoods do not apply: estimate the copula by Kendall's tau, which is corrected for ties, or leave the \
         column out"
    )]
    Discrete {
        /// The column.
        column: usize,
        /// The number of different values.
        distinct: usize,
        /// The number of rows.
        rows: usize,
    },
    /// A named column of a table has an error.
    #[error("column `{name}`: {source}")]
    Column {
        /// The name of the column.
        name: String,
        /// The error, whose own column is the number of this one.
        source: Box<Self>,
    },
    /// Two columns of a table have the same name.
    #[error("the name `{name}` is given to two columns: give each column its own")]
    RepeatedName {
        /// The name.
        name: String,
    },
    /// No column of a table has a name.
    #[error("there is no column `{name}`: the columns are {names:?}")]
    NoColumn {
        /// The name asked for.
        name: String,
        /// The names that there are.
        names: Vec<String>,
    },
    /// A column of the observations is constant.
    #[error(
        "column {column} of the observations is constant, so that no rank correlation is defined with \
         it: leave the column out"
    )]
    Constant {
        /// The column.
        column: usize,
    },
    /// An iteration did not converge.
    #[error(
        "the {what} did not converge: after {iterations} iterations the residual is {residual:e}; give a \
         matrix closer to a correlation matrix, or a larger smallest eigenvalue"
    )]
    NoConvergence {
        /// The name of the result.
        what: &'static str,
        /// The number of iterations.
        iterations: usize,
        /// The residual after the last iteration.
        residual: f64,
    },
}
