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
        /// The number of times that it appears.
        times: usize,
    },
    /// No token is left beside the padding.
    #[error(
        "all tokens are padding, so that there is no attention to share out; leave such examples out"
    )]
    OnlyPadding,
    /// Fewer than three tokens, or other variables, which have no causal structure that could be told from another.
    #[error("{tokens} tokens or variables have no structure that could be told: give at least 3")]
    TooFewTokens {
        /// The number of tokens or variables.
        tokens: usize,
    },
    /// Too few samples, or none.
    #[error(
        "{samples} samples are too few: at least {least} are needed{}",
        if *least > 4 {
            " to test what is given so many nodes; a search with a smaller `largest` gives fewer"
        } else {
            ""
        }
    )]
    TooFewSamples {
        /// The number of samples.
        samples: usize,
        /// The number of samples needed.
        least: usize,
    },
    /// Correlations do not come from samples, so that how many there are is not known.
    #[error(
        "correlations of attention come from no samples unless its values are given: give the values, or how many \
         samples to test by (`FisherZ::new`)"
    )]
    NoSamples,
    /// A token's output, or another variable, does not vary.
    #[error(
        "token or variable {token} has the variance {variance:e}, too little to correlate with anything: leave it out \
         (tokens of attention by `Correlations::of_tokens`)"
    )]
    LowVariance {
        /// The first such token.
        token: usize,
        /// Its variance.
        variance: f64,
    },
    /// All tokens look at the others alike.
    #[error(
        "all tokens or variables are correlated by at least {smallest}, so that everything seems to depend on \
         everything: keep one of the variables, or, of attention that is nearly uniform, take another head or layer"
    )]
    NearlyUniform {
        /// The smallest absolute correlation.
        smallest: f64,
    },
    /// There are not more samples than variables, so that the variables depend on one another.
    #[error(
        "{variables} variables have only {samples} samples, so that they depend on one another: if the samples are the \
         rows, as in tables of numpy and pandas, give the transpose; otherwise give at least {} samples or leave out \
         variables",
        variables + 1
    )]
    FewerSamplesThanVariables {
        /// The number of variables, the rows.
        variables: usize,
        /// The number of samples, the columns.
        samples: usize,
    },
    /// The rows of the attention depend on one another, so that nothing can be conditioned on all of them.
    #[error(
        "{tokens} tokens or variables have rank {rank} in their precision, and {} repeat what the others say: leave \
         these out (tokens of attention by `Correlations::of_tokens`), or give more samples",
        some_of(dependent)
    )]
    RankDeficient {
        /// The numerical rank.
        rank: usize,
        /// The number of tokens.
        tokens: usize,
        /// The tokens that depend on the others, in ascending order: as many as the rank lacks.
        dependent: Vec<usize>,
    },
    /// An edge joins a node with itself, or two nodes that another edge joins.
    #[error(
        "the edge between nodes {} and {} is one too many: no node is joined with itself, and two nodes have one edge, \
         whatever its direction",
        nodes[0],
        nodes[1]
    )]
    RepeatedEdge {
        /// The two ends of the edge.
        nodes: [usize; 2],
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
    /// A direct effect is not finite.
    #[error(
        "the effect of token {cause} on token {effect} overflows: a token between them, or one of the two, gives itself \
         next to no weight; take another head or layer"
    )]
    Overflow {
        /// The token that is affected.
        effect: usize,
        /// The earlier token.
        cause: usize,
    },
    /// A token gives itself no weight, so that its own noise has no place.
    #[error(
        "token {token} gives itself no weight, and so has no equation of its own: take another head or layer"
    )]
    NoOwnWeight {
        /// The token.
        token: usize,
    },
}

impl Error {
    /// The error with the nodes' own numbers, where node i of it is `nodes[i]`.
    pub(crate) fn of_nodes(mut self, nodes: &[usize]) -> Self {
        match &mut self {
            Self::LowVariance { token, .. } => *token = nodes[*token],
            Self::RankDeficient { dependent, .. } => {
                dependent.iter_mut().for_each(|node| *node = nodes[*node]);
                dependent.sort_unstable();
            }
            _ => {}
        }
        self
    }
}

/// A list of nodes, of which a long one is cut short.
fn some_of(nodes: &[usize]) -> String {
    const SHOWN: usize = 8;
    match nodes.len().checked_sub(SHOWN) {
        None | Some(0) => format!("{nodes:?}"),
        Some(others) => format!("{:?} and {others} others", &nodes[..SHOWN]),
    }
}
