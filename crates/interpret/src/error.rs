//! The errors of this crate.

use bochner_numerics::ArgumentError;
use thiserror::Error;

/// An error of this crate.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument has a wrong shape, no elements, or a value that is not allowed.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// No pair is kept, so that there is nothing to take a mean over.
    #[error("the mask keeps no pair of a query and a key; leave such batches out of the trace")]
    NothingKept,
    /// The attention refused the mask or the magnitude.
    #[error(transparent)]
    Attention(#[from] bochner_attention::Error),
    /// The spectral points do not fit the queries and keys.
    #[error(transparent)]
    Kernel(#[from] bochner_kernels::Error),
    /// A matrix could not be decomposed.
    #[error(transparent)]
    Dense(#[from] bochner_dense::Error),
    /// The modalities do not partition the tokens.
    #[error(
        "token {token} appears {times} times among the positions of the modalities, but must appear once: give each \
         token to vision, to text or to the padding"
    )]
    NotPartitioned {
        /// The first such token.
        token: usize,
        /// How often it appears.
        times: usize,
    },
    /// No token is left beside the padding.
    #[error(
        "all tokens are padding, so that there is no attention to share out; leave such examples out"
    )]
    OnlyPadding,
    /// Fewer than three tokens, which have no causal structure that could be told from another.
    #[error("{tokens} tokens have no structure that could be told: give at least 3")]
    TooFewTokens {
        /// How many there are.
        tokens: usize,
    },
    /// Too few samples, or none.
    #[error(
        "{samples} samples are too few: at least {least} are needed; a search needs fewer with a smaller `largest`"
    )]
    TooFewSamples {
        /// How many there are.
        samples: usize,
        /// How many are needed.
        least: usize,
    },
    /// A token's output does not vary.
    #[error(
        "the output of token {token} has the variance {variance:e}, too little to correlate with anything: leave the \
         token out"
    )]
    LowVariance {
        /// The first such token.
        token: usize,
        /// Its variance.
        variance: f64,
    },
    /// All tokens look at the others alike.
    #[error(
        "the attention is nearly uniform: all tokens are correlated by {smallest} or more, so that everything seems to \
         depend on everything; take another head or layer"
    )]
    NearlyUniform {
        /// The smallest absolute correlation.
        smallest: f64,
    },
    /// The rows of the attention depend on one another, so that nothing can be conditioned on all of them.
    #[error(
        "the attention of {tokens} tokens has rank {rank} in its precision: leave out tokens that repeat others, or \
         give more samples of the values"
    )]
    RankDeficient {
        /// The numerical rank.
        rank: usize,
        /// The number of tokens.
        tokens: usize,
    },
    /// A token, or another node of a graph, is named twice where nodes must be distinct.
    #[error("node {node} is named twice where nodes must be distinct: name each once")]
    RepeatedNode {
        /// The node.
        node: usize,
    },
    /// A graph that must say everything has a circle.
    #[error(
        "the edge between nodes {} and {} has a circle, and so implies no independences: take a graph without circles",
        nodes[0],
        nodes[1]
    )]
    Undecided {
        /// The two ends of the first such edge.
        nodes: [usize; 2],
    },
    /// A node is its own cause.
    #[error("node {node} is its own cause: take a graph without directed cycles")]
    Cyclic {
        /// The first such node.
        node: usize,
    },
    /// A token looks ahead where the mask must be causal.
    #[error(
        "token {row} looks ahead at token {column} with the weight {got:e}: attention is not causal; search for its \
         structure instead"
    )]
    NotCausal {
        /// The token that looks.
        row: usize,
        /// The later token.
        column: usize,
        /// The weight.
        got: f64,
    },
    /// A token gives itself no weight, so that its own noise has no place.
    #[error("token {token} gives itself no weight, and so has no equation of its own")]
    NoOwnWeight {
        /// The token.
        token: usize,
    },
}
