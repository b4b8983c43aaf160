//! Errors of models and trainers.

use bochner_numerics::ArgumentError;
use thiserror::Error;

/// An error of this crate.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument has a wrong shape, no elements, or a value that is not allowed.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// A node that is learned from or judged by has no label.
    #[error("node {node} has no label; leave it out")]
    Unlabelled {
        /// The node.
        node: usize,
    },
    /// A sequence is longer than the table of positions.
    #[error(
        "a sequence of {got} positions does not fit the table of {longest}: cut it to {longest}, or make \
         the model with `longest` of its positions at least {got}"
    )]
    TooLong {
        /// The length of the sequence, with the padding of its batch if it has any.
        got: usize,
        /// The number of positions in the table.
        longest: usize,
    },
    /// A sentence to learn from, or to classify, is longer than the table of positions.
    #[error(
        "sentence {sentence} has {got} words, but the model's table has {longest} positions: cut such sentences to \
         {longest}, or make the model with `longest` at least {got}"
    )]
    SentenceTooLong {
        /// The sentence's place among those given, from 0.
        sentence: usize,
        /// Its length.
        got: usize,
        /// The number of positions in the table.
        longest: usize,
    },
    /// A pair to learn from is longer than the table of positions.
    #[error(
        "the {side} of pair {pair} has {got} positions, but the model's table has {longest}: leave such pairs out, or \
         make the model with `longest` at least {got}"
    )]
    PairTooLong {
        /// The pair's place, from 0.
        pair: usize,
        /// The side, `source` or `target`.
        side: &'static str,
        /// The length of the side, its mark included.
        got: usize,
        /// The number of positions in the table.
        longest: usize,
    },
    /// The numbers of a model overflow, or are NaN, so that no translation of a source has a probability.
    #[error(
        "the model's numbers overflow or are NaN for this source: go back to an earlier checkpoint, or train the model \
         with a smaller `learning_rate` or with `clip_norm`"
    )]
    Overflow,
    /// A computation is not supported.
    #[error("{what} is not supported; use {instead}")]
    Unsupported {
        /// The computation that was asked for.
        what: &'static str,
        /// The computation to ask for instead.
        instead: &'static str,
    },
    /// The hook on the gradients of a step failed: see
    /// [`with_gradient_hook`](crate::training::Trainer::with_gradient_hook).
    #[error("the hook on the gradients failed: {0}")]
    GradientHook(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A checkpoint lacks the optimiser or the random stream.
    #[error("{} holds no optimiser state or random stream: it was not written by a trainer", path.display())]
    IncompleteCheckpoint {
        /// The file.
        path: std::path::PathBuf,
    },
    /// A checkpoint is of this model, but of another training of it.
    #[error(
        "{0}; to start another run from these parameters, restore the file into a model (`Checkpoint::restore`, after \
         `Checkpoint::split(\"best\")` if it holds a best epoch) and begin with `Trainer::from_model`"
    )]
    AnotherRun(bochner_nn::CheckpointError),
    /// A checkpoint of a training run was to be loaded without its trainer.
    #[error(
        "{} is the checkpoint of a training run, not a {what}: `Trainer::resume` goes on with it, and \
         `Trainer::{method}` then makes a {what}, which can be saved",
        path.display()
    )]
    TrainingRun {
        /// The file.
        path: std::path::PathBuf,
        /// The type that was to be loaded.
        what: &'static str,
        /// The method of a trainer that makes it.
        method: &'static str,
    },
    /// A checkpoint holds something else than what was to be loaded, or settings that cannot be read.
    #[error(
        "{} cannot be read as a {what}, which `{writer}::save` writes: {reason}",
        path.display()
    )]
    OtherContents {
        /// The file.
        path: std::path::PathBuf,
        /// The type that was to be loaded.
        what: &'static str,
        /// The part of the file that is missing or cannot be read.
        reason: String,
        /// The type whose files are loaded.
        writer: &'static str,
    },
    /// An error of a layer of graph attention.
    #[error(transparent)]
    GraphLayer(#[from] bochner_graph::LayerError),
    /// Sentences that cannot be cut into batches.
    #[error(transparent)]
    Text(#[from] bochner_text::Error),
    /// An error of the attention layer.
    #[error(transparent)]
    Attention(#[from] bochner_attention::Error),
    /// An error of the layers, the optimiser or a checkpoint.
    #[error(transparent)]
    Nn(bochner_nn::Error),
}

impl From<bochner_nn::Error> for Error {
    /// Unwraps an error of the attention that came through the tape.
    fn from(error: bochner_nn::Error) -> Self {
        error
            .into_operation_error()
            .map_or_else(Self::Nn, Self::Attention)
    }
}
