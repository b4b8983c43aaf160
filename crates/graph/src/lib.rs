//! Graphs and their nodes' features, ready for attention along edges.
//!
//! Attention on a graph is attention behind a mask of which almost nothing is kept: a node attends
//! to the few from which an edge leads to it. So nothing here is ever a matrix of all pairs of nodes.
//! A [`Graph`] is a list of edges in compressed rows, by target for the weights and by source for
//! their gradients; what is computed takes time and memory in proportion to its edges.
//!
//! A node's features are often mostly zero as well (which words a paper has, out of thousands):
//! [`Features`] are dense or sparse, and their product with a weight costs what is stored
//! ([`Features::product`], [`Features::weight_vjp`]).
//!
//! Nothing is done behind the caller's back. Self loops and the removal of repeated edges are
//! operations that say what they did; edges keep the numbers under which the caller knows them.
//!
//! # Example
//!
//! A small citation graph, from its edges to the transformed features of its nodes:
//!
//! ```
//! use bochner_graph::{Features, Graph, SparseFeatures};
//! use ndarray::array;
//!
//! // Paper 1 cites paper 0, paper 2 cites both, and one citation is listed twice.
//! let cited = Graph::from_edges(3, [(0, 1), (0, 2), (1, 2), (0, 1)])?;
//! let once = cited.without_duplicates();
//! assert_eq!(once.removed, 1);
//! let looped = once.graph.with_self_loops()?;
//! assert_eq!(looped.added, [0, 1, 2]);
//! let graph = looped.graph;
//! assert!(graph.in_edges(2).map(|(source, _)| source).eq([0, 1, 2]));
//!
//! // Which of four words each paper has.
//! let words = SparseFeatures::new(4, &[0, 2, 3, 5], &[0, 1, 1, 2, 3], vec![1.0; 5])?;
//! let words = words.row_normalised();
//! let weight = array![[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.0, 2.0]];
//! let transformed = Features::Sparse(&words).product(weight.view())?;
//! assert_eq!(transformed, array![[0.5, 0.5], [0.0, 1.0], [1.0, 1.0]]);
//! # Ok::<(), bochner_graph::Error>(())
//! ```
//!
//! # Conventions
//!
//! An edge is a pair (source, target); a target attends to its sources. Arrays are row-major, nodes
//! first: features `[N, F]`. Whatever belongs to edges is in the order in which the caller listed
//! them. Results are the same to the bit for any number of threads, and for any order of the edges.
//!
//! # Map
//!
//! | item | is |
//! |---|---|
//! | [`Graph`] | edges by target and by source; from lists, compressed rows, petgraph (feature `petgraph`) |
//! | [`WithSelfLoops`], [`WithoutDuplicates`] | what was done to one |
//! | [`Batch`] | several graphs as one |
//! | [`NeighbourSampler`], [`Neighbourhood`], [`FanOut`] | a few neighbours of a few nodes, layer by layer |
//! | [`Features`], [`SparseFeatures`] | what is known of the nodes, times a weight |
//! | [`row_normalised`], [`dropped_out`] | of dense features; sparse ones have methods |
//! | [`Error`] | what can be wrong with the arguments |

mod compressed;
mod error;
mod features;
mod graph;
mod sampling;

pub use error::Error;
pub use features::{Features, SparseFeatures, dropped_out, row_normalised};
pub use graph::{Batch, Graph, WithSelfLoops, WithoutDuplicates};
pub use sampling::{FanOut, NeighbourSampler, Neighbourhood};
