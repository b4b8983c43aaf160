//! What can go wrong, and what to do about it.

use thiserror::Error;

/// An error of this crate.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// Two arrays, or an array and a setting, do not fit together.
    #[error("{what}: {expected} are needed, {got} are given")]
    ShapeMismatch {
        /// What is counted.
        what: &'static str,
        /// What the other arguments call for.
        expected: usize,
        /// What was given.
        got: usize,
    },
    /// There is nothing to learn from.
    #[error("there are no {what}; give at least one")]
    Empty {
        /// The argument, in the plural.
        what: &'static str,
    },
    /// The index of a row or node is outside the data set.
    #[error("there is no row or node {index}: there are {rows}, counted from 0")]
    RowOutOfRange {
        /// The index.
        index: usize,
        /// The number of rows or nodes.
        rows: usize,
    },
    /// A label is no class.
    #[error("node {node} has the label {label}; there are {classes} classes, counted from 0")]
    LabelOutOfRange {
        /// The node.
        node: usize,
        /// Its label.
        label: usize,
        /// The number of classes.
        classes: usize,
    },
    /// A node that is learned from or judged by has no label.
    #[error("node {node} has no label; leave it out")]
    Unlabelled {
        /// The node.
        node: usize,
    },
    /// A number that must be finite is not.
    #[error("there is {value} in the {what}, at position {index}; remove or repair that row")]
    NotFinite {
        /// The argument.
        what: &'static str,
        /// The position in row-major order.
        index: usize,
        /// What stands there.
        value: f64,
    },
    /// A setting lies outside its range.
    #[error("{name} must be {range}, but is {got}")]
    OutOfRange {
        /// The setting.
        name: &'static str,
        /// What is allowed.
        range: &'static str,
        /// What was given.
        got: f64,
    },
    /// There is no such computation.
    #[error("there is no {what}; use {instead}")]
    Unsupported {
        /// What was asked for.
        what: &'static str,
        /// What there is.
        instead: &'static str,
    },
    /// A checkpoint lacks the optimiser or the random stream.
    #[error("{} holds no optimiser state or random stream: it was not written by a trainer", path.display())]
    IncompleteCheckpoint {
        /// The file.
        path: std::path::PathBuf,
    },
    /// From a layer of graph attention.
    #[error(transparent)]
    GraphLayer(#[from] bochner_graph::LayerError),
    /// From the attention layer.
    #[error(transparent)]
    Attention(#[from] bochner_attention::Error),
    /// From the layers, the optimiser or a checkpoint.
    #[error(transparent)]
    Nn(bochner_nn::Error),
}

impl From<bochner_nn::Error> for Error {
    /// Takes the attention's own error back out, if it is one that came through the tape.
    fn from(error: bochner_nn::Error) -> Self {
        error
            .into_operation_error()
            .map_or_else(Self::Nn, Self::Attention)
    }
}
