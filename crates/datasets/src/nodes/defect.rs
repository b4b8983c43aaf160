//! Defects of graphs, features and labels.

use bochner_numerics::ArgumentError;

/// A defect of a graph, its features or its labels.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphDefect {
    /// A size, an index, a value or a probability is wrong.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// A file holds an object of another kind.
    #[error("the file does not hold {expected}")]
    Content {
        /// The object that is needed.
        expected: &'static str,
    },
    /// The offsets of a sparse matrix do not rise from 0 to the number of its entries.
    #[error(
        "the entries of row {row} end before they begin or after the last entry: offsets must rise"
    )]
    RowPointer {
        /// The row, from 0.
        row: usize,
    },
    /// The columns of a row of a sparse matrix do not increase.
    #[error(
        "the columns of row {row} do not increase: sort them and add up the values of repeated ones"
    )]
    Unsorted {
        /// The row, from 0.
        row: usize,
    },
    /// A row of labels is not a single 1 among zeros.
    #[error("row {row} of the labels is not a single 1 among zeros")]
    NotOneHot {
        /// The row, from 0.
        row: usize,
    },
    /// The first rows of one file should repeat another file, and do not.
    #[error("row {row} differs from row {row} of `{other}`")]
    NotTheHead {
        /// The first row that differs, from 0.
        row: usize,
        /// The other file.
        other: &'static str,
    },
}
