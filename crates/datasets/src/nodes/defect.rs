//! What can be wrong with a graph, its features and its labels.

/// What is wrong with a graph, its features or its labels.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphDefect {
    /// An object of another kind than expected.
    #[error("{what}: expected {expected}, found {found}")]
    Kind {
        /// Which object.
        what: &'static str,
        /// What it should be.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// A part of an object is absent, or there more than once.
    #[error("`{key}` is there {count} times; it must be there once")]
    Key {
        /// Its name.
        key: &'static str,
        /// How often it is there.
        count: usize,
    },
    /// Numbers are of another type than expected.
    #[error("{what}: expected numbers of type {expected}, found {found}")]
    Dtype {
        /// Which array.
        what: &'static str,
        /// The type expected.
        expected: &'static str,
        /// The type found.
        found: &'static str,
    },
    /// Something has another size than expected.
    #[error("{what}: expected {expected}, found {found}")]
    Size {
        /// What has the size.
        what: &'static str,
        /// The size expected.
        expected: usize,
        /// The size found.
        found: usize,
    },
    /// The first entries of the rows do not rise from 0 to the number of entries.
    #[error("row {row} (from 0) ends before it begins or after the last entry")]
    RowPointer {
        /// The row, from 0.
        row: usize,
    },
    /// A number that should be an index lies outside its range.
    #[error("{what} {index} is outside the range from {start} to {end}, exclusive")]
    OutOfRange {
        /// What it is an index of.
        what: &'static str,
        /// The index.
        index: i64,
        /// The least index.
        start: usize,
        /// One more than the greatest index.
        end: usize,
    },
    /// The columns of a row of a sparse matrix do not increase.
    #[error("the columns of row {row} (from 0) do not increase")]
    Unsorted {
        /// The row, from 0.
        row: usize,
    },
    /// A feature is NaN or infinite.
    #[error("the value in row {row}, column {column} (from 0) is not finite")]
    NotFinite {
        /// The row, from 0.
        row: usize,
        /// The column, from 0.
        column: usize,
    },
    /// A row of labels is not a single 1 among zeros.
    #[error("row {row} (from 0) of the labels is not a single 1 among zeros")]
    NotOneHot {
        /// The row, from 0.
        row: usize,
    },
    /// A node is there twice.
    #[error("node {node} is there more than once")]
    Repeated {
        /// The node.
        node: usize,
    },
    /// Two nodes share one list of neighbours.
    #[error("node {node} shares its list of neighbours with an earlier node")]
    SharedList {
        /// The later node.
        node: usize,
    },
    /// Rows that should be a copy of other rows differ from them.
    #[error("row {row} (from 0) differs from row {row} of `{other}`")]
    NotTheHead {
        /// The first row that differs, from 0.
        row: usize,
        /// The other file.
        other: &'static str,
    },
    /// A probability is not one.
    #[error("{value} is no probability")]
    Probability {
        /// The number given.
        value: f64,
    },
}
