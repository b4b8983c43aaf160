//! Errors of the engine.

use bochner_numerics::ArgumentError;
use thiserror::Error;

/// An error of this crate.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument has the wrong shape or size, or lies outside its range.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// Two settings do not go together.
    #[error("{what} is not supported; use {instead}")]
    Unsupported {
        /// The combination.
        what: &'static str,
        /// The alternative.
        instead: &'static str,
    },
    /// A mask, or the counts of a step, do not fit the sequences.
    #[error("the {what} must be {expected}, not {got}")]
    Mask {
        /// The part of the mask, or the counts.
        what: &'static str,
        /// The value that the sequences call for.
        expected: String,
        /// The value that was given.
        got: String,
    },
    /// A number that some query can see is NaN, infinite or too large.
    #[error(
        "`{array}` holds {got} at {index:?}, which a query attends to or from; numbers there must not exceed \
         {limit:e} in size: rescale them, or hide the position"
    )]
    OutOfRange {
        /// The array: `q`, `k`, `v` or `cotangent`.
        array: &'static str,
        /// The index of the number, `[example, head, position, column]`.
        index: [usize; 4],
        /// The number.
        got: f64,
        /// The largest size that is allowed, the fourth root of the type's largest number.
        limit: f64,
    },
    /// A score is NaN or plus infinity for a pair that the mask keeps.
    #[error(
        "the score of query {query} and key {key} in head {head} of example {example} is {got}; a score must be \
         finite, minus infinity (a logit) or 0 (a weight) to hide the pair"
    )]
    Score {
        /// The example.
        example: usize,
        /// The head.
        head: usize,
        /// The position of the query.
        query: usize,
        /// The position of the key.
        key: usize,
        /// The score.
        got: f64,
    },
    /// The weights of a row are finite, and their sum is not.
    #[error(
        "the weights of query {query} in head {head} of example {example} add up to more than the largest number; \
         scale the score down"
    )]
    RowSum {
        /// The example.
        example: usize,
        /// The head.
        head: usize,
        /// The position of the query.
        query: usize,
    },
    /// A slope of the score, of a feature map or of a scan is not finite.
    #[error(
        "the gradient along {array} is not finite in head {head} of example {example}: a slope is NaN or infinite"
    )]
    Slope {
        /// The array along which the gradient goes.
        array: &'static str,
        /// The example.
        example: usize,
        /// The head.
        head: usize,
    },
    /// The features of a head are NaN or infinite, or give an output that is.
    #[error(
        "the features of head {head} of example {example} give an output that is not finite; features, and the logarithms \
         of features, must be finite"
    )]
    Features {
        /// The example.
        example: usize,
        /// The head.
        head: usize,
    },
    /// A scan left a number of its output unwritten, or wrote NaN or infinity.
    #[error(
        "the scan wrote no finite number into column {column} of its output at position {position} of head {head}, \
         example {example}; `step` must write all of them"
    )]
    Scan {
        /// The example.
        example: usize,
        /// The head.
        head: usize,
        /// The position.
        position: usize,
        /// The column.
        column: usize,
    },
    /// The normaliser takes scores of the other kind.
    #[error(
        "the normaliser {normaliser} takes {expected:?} scores, and the kernel gives {got:?} scores"
    )]
    Kind {
        /// The normaliser.
        normaliser: String,
        /// The kind that it takes.
        expected: crate::Kind,
        /// The kind that the kernel gives.
        got: crate::Kind,
    },
    /// The saved forward pass belongs to other arrays or settings.
    #[error("the saved forward pass is one of other {what}; pass what its `attend` was given")]
    Saved {
        /// The part that differs.
        what: &'static str,
    },
}
