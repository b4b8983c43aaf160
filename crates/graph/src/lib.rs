//! Graph attention as a kernel: GAT, GATv2 and the kernel form, along edges.
//!
//! Attention on a graph is attention behind a mask of which almost nothing is kept: a node attends
//! to the few from which an edge leads to it. So nothing here is ever a matrix of all pairs of nodes.
//! A [`Graph`] is a list of edges in compressed rows, by target for the weights and by source for
//! their gradients; what is computed takes time and memory in proportion to its edges.
//!
//! GAT scores an edge $(j \to i)$ by $\mathrm{LeakyReLU}(u_{ij})$ with
//! $u_{ij} = a \cdot (q_i + k_j)$, $q_i = [W h_i, 0]$ and $k_j = [0, W h_j]$. Write the LeakyReLU as
//! $c_{ij} u_{ij}$, where $c_{ij}$ is 1 or the slope, complete the squares, and the weight of an edge
//! falls apart as that of softmax attention does:
//!
//! $$e^{\mathrm{LeakyReLU}(u)} = \underbrace{e^{-|q_i - c a|^2 / 2} e^{-|c a - k_j|^2 / 2}}\_{\text{two similarities}}
//! \cdot \underbrace{e^{(2 |c a|^2 + |q_i|^2 + |k_j|^2) / 2}}\_{\text{magnitudes}}, \qquad c = c_{ij}$$
//!
//! The kernel form ([`Score::Kernel`]) puts kernels given by their spectral points in the place of the
//! similarities, and any p-norm in that of the magnitudes. Each similarity depends on one node and on
//! c alone, which takes two values: two numbers a node, whatever the number of edges. Where the
//! points come from is the business of the caller.
//!
//! A node's features are often mostly zero as well (which words a paper has, out of thousands):
//! [`Features`] are dense or sparse, and their product with a weight costs what is stored
//! ([`Features::product`], [`Features::weight_vjp`]).
//!
//! All of this is plain functions of arrays, each next to its vector-Jacobian product ([`attend`],
//! [`attend_vjp`]): no framework, no tape. With the default feature `dfdx` there are also trainable
//! layers, each one operation on the tape of dfdx (`GraphAttention`, `GraphConvolution`). And nothing
//! is done behind the caller's back. Self loops and the removal of repeated edges are operations that
//! say what they did; edges keep the numbers under which the caller knows them.
//!
//! # Example
//!
//! The crates whose types appear in arguments are re-exported: [`ndarray`], and behind their features
//! `dfdx` and `petgraph`.
//!
//! A small citation graph, from its edges to the weights of a kernel score and a gradient:
//!
//! ```
//! use bochner_graph::ndarray::{Array3, array};
//! use bochner_graph::{
//!     Features, Graph, Merge, Points, Score, Settings, SparseFeatures, attend, attend_vjp,
//! };
//!
//! // Paper 1 cites paper 0, paper 2 cites both, and one citation is listed twice.
//! let cited = Graph::from_edges(3, [(0, 1), (0, 2), (1, 2), (0, 1)])?;
//! let once = cited.without_duplicates();
//! assert_eq!(once.removed, 1);
//! let looped = once.graph.with_self_loops()?;
//! assert_eq!(looped.added, [0, 1, 2]);
//! let graph = looped.graph;
//!
//! // Which of four words each paper has, and two heads of width 1.
//! let words = SparseFeatures::new(4, &[0, 2, 3, 5], &[0, 1, 1, 2, 3], vec![1.0; 5])?;
//! let words = words.row_normalised();
//! let weight = array![[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.0, 2.0]];
//! let h = Features::Sparse(&words).product(weight.view())?;
//! assert_eq!(h, array![[0.5, 0.5], [0.0, 1.0], [1.0, 1.0]]);
//!
//! let a = array![[1.0, -0.5], [0.3, 0.7]];
//! let w = Array3::from_shape_fn((2, 16, 2), |(head, r, n)| ((head + 3 * r + n) as f64).sin());
//! let settings = Settings {
//!     merge: Merge::Concatenate,
//!     ..Settings::new(Score::Kernel {
//!         a: a.view(),
//!         points: Points::Stationary { w: w.view() },
//!         p: 2.0,
//!         floor: 1e-5,
//!     })
//! };
//! let attended = attend(&graph, h.view(), h.view(), &settings)?;
//! // Paper 0 cites nothing: all that it attends to is itself.
//! assert_eq!(attended.output.row(0), h.row(0));
//! let weights = attended.weights();
//! assert_eq!(weights.edges[0], (0, 1));
//! assert!((weights.weights[[0, 0]] + weights.weights[[4, 0]] - 1.0).abs() < 1e-12);
//!
//! let g = attend_vjp(&attended, h.view())?;
//! let along_h = &g.targets + &g.sources;
//! let along_weight = Features::Sparse(&words).weight_vjp(along_h.view())?;
//! assert_eq!(along_weight.dim(), weight.dim());
//! # Ok::<(), bochner_graph::Error>(())
//! ```
//!
//! # Conventions
//!
//! An edge is a pair (source, target); a target attends to its sources. Arrays are row-major, nodes
//! first and the columns of a head side by side: `[N, H F]`. Whatever belongs to edges is in the order
//! in which the caller listed them; dropout on weights goes by that order too. A target to which no edge
//! leads receives zero. Results are the same to the bit for any number of threads and, without that dropout and
//! unless repeated edges have different attributes, for any order of the edges; NaN never comes out of
//! finite numbers.
//!
//! Users of PyTorch Geometric find `GATConv` and `GATv2Conv` as `GraphAttentionConfig::gat` and
//! `gatv2`, `GCNConv` as `GraphConvolution`, all without the self loops that layers add there, and under
//! other names:
//!
//! | there | here |
//! |---|---|
//! | `edge_index`, `coalesce`, `add_self_loops` | [`Graph::from_edges`], [`Graph::without_duplicates`], [`Graph::with_self_loops`] |
//! | `concat`, `negative_slope`, `dropout` | [`Merge`], `slope`, `coefficient_dropout` |
//! | `return_attention_weights` | [`EdgeAttention::weights`], `GraphAttention::weights` |
//! | `edge_attr`, `edge_dim` | [`EdgeTerm`], `AttributedGraph` and `edge_inputs` |
//! | `NeighborLoader`, `num_neighbors` | [`NeighbourSampler`], [`FanOut`] in the order of the layers: the reverse |
//! | `Batch.from_data_list` | [`Batch`] |
//! | `global_mean_pool`, `global_add_pool`, `global_max_pool` | [`pool`] with a [`Pooling`] |
//!
//! # Map
//!
//! | item | is |
//! |---|---|
//! | [`Graph`] | edges by target and by source; from lists, compressed rows, petgraph (feature `petgraph`) |
//! | [`WithSelfLoops`], [`WithoutDuplicates`] | a graph after such a change, and what was changed |
//! | [`Batch`] | several graphs as one |
//! | [`NeighbourSampler`], [`Neighbourhood`], [`FanOut`] | a few neighbours of a few nodes, layer by layer |
//! | [`Features`], [`SparseFeatures`] | features of the nodes, and their product with a weight |
//! | [`row_normalised`], [`dropped_out`] | dense features changed row by row; sparse features have methods |
//! | [`attend`], [`attend_vjp`] | attention along edges for any [`Settings`] |
//! | [`scores`], [`EdgeWeights`] | the scores and weights, edge by edge |
//! | [`Score`], [`Points`] | how an edge is scored |
//! | [`EdgeTerm`] | what attributes of an edge add to its score |
//! | [`convolve`], [`convolve_vjp`] | the normalised sum of graph convolutional networks |
//! | [`Merge`] | how heads are put together |
//! | [`pool`], [`pool_vjp`], [`PoolingOperation`] | one row for each graph of a [`Batch`] |
//! | [`GraphAttentionConfig`] with [`AttentionKind`], [`EdgeKernel`], [`Bias`], [`Residual`], [`InitialMap`] | a layer's settings, its parameters, their initial values, and its output without a tape |
//! | [`GraphConvolutionConfig`] | the same of the layer of graph convolutional networks |
//! | [`GraphAttentionOperation`], [`GraphConvolutionOperation`] | a layer as an operation that can be trained without a framework |
//! | `GraphAttention`, `GraphConvolution` | the trainable layers on the tape of dfdx (feature `dfdx`) |
//! | [`AttributedGraph`], [`Nodes`] | the arguments of a layer |
//! | `GraphInspection` | the weights, points and correlations inside a layer |
//! | [`Error`] | what can be wrong with the arguments |

mod attend;
mod compressed;
mod convolution;
mod engine;
mod error;
mod features;
mod graph;
mod layers;
mod pooling;
mod sampling;
mod score;
mod settings;
mod sums;

pub use attend::{EdgeAttention, EdgeAttentionGradients, EdgeWeights, attend, attend_vjp, scores};
#[cfg(feature = "dfdx")]
pub use bochner_nn::prelude;
pub use convolution::{convolve, convolve_vjp};
#[cfg(feature = "dfdx")]
pub use dfdx;
pub use error::Error;
pub use features::{Features, SparseFeatures, dropped_out, row_normalised};
pub use graph::{Batch, Graph, LoopAttributes, WithSelfLoops, WithoutDuplicates};
pub use layers::{
    AttentionKind, AttributedGraph, Bias, EdgeKernel, GraphAttentionConfig,
    GraphAttentionOperation, GraphAttentionSaved, GraphConvolutionConfig,
    GraphConvolutionOperation, GraphConvolutionSaved, InitialMap, LayerError, Nodes,
    OperationGraph, Residual,
};
#[cfg(feature = "dfdx")]
pub use layers::{GraphAttended, GraphAttention, GraphConvolution, GraphInput, GraphInspection};
pub use ndarray;
#[cfg(feature = "petgraph")]
pub use petgraph;
#[cfg(feature = "dfdx")]
pub use pooling::pool_nodes;
pub use pooling::{Pooling, PoolingOperation, pool, pool_vjp};
pub use sampling::{FanOut, NeighbourSampler, Neighbourhood};
pub use score::{EdgeTerm, EdgeTermGradients, Points, PointsGradients, Score};
pub use settings::{Merge, Settings};
