//! Several graphs as one.

use super::Graph;
use crate::Error;
use std::ops::Range;

/// Several graphs as one whose parts no edge connects: a block-diagonal adjacency matrix.
///
/// Nodes and edges of graph `b` follow those of the graphs before it; [`targets`](Self::targets),
/// [`sources`](Self::sources) and [`edges`](Self::edges) say where. Attention over a batch is the
/// attention over each graph, to the bit. A layer that infers its spectral points
/// (`GraphAttentionConfig::infers_points`) is the exception: they are inferred from the means over all
/// nodes of the batch.
///
/// ```
/// use bochner_graph::{Batch, Graph};
///
/// let pair = Graph::from_edges(2, [(0, 1)])?;
/// let triangle = Graph::from_edges(3, [(0, 1), (1, 2), (2, 0)])?;
/// let batch = Batch::new([&pair, &triangle])?;
/// assert_eq!(batch.targets(1), 2..5);
/// assert_eq!(batch.graph().edges()[batch.edges(1)], [(2, 3), (3, 4), (4, 2)]);
/// # Ok::<(), bochner_graph::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    graph: Graph,
    targets: Vec<usize>,
    sources: Vec<usize>,
    edges: Vec<usize>,
}

impl Batch {
    /// Puts graphs side by side.
    ///
    /// # Errors
    /// [`Error::TooMany`] if they have too many nodes or edges together.
    pub fn new<'a>(graphs: impl IntoIterator<Item = &'a Graph>) -> Result<Self, Error> {
        let (mut targets, mut sources, mut edges) = (vec![0], vec![0], vec![0]);
        let mut all = Vec::new();
        let (mut first_target, mut first_source) = (0, 0);
        for graph in graphs {
            let own = graph.edges().into_iter();
            all.extend(own.map(|(source, target)| (first_source + source, first_target + target)));
            first_target += graph.targets();
            first_source += graph.sources();
            targets.push(first_target);
            sources.push(first_source);
            edges.push(all.len());
        }
        Ok(Self {
            graph: Graph::bipartite(first_target, first_source, all)?,
            targets,
            sources,
            edges,
        })
    }

    /// The graph of all.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The number of graphs.
    pub fn len(&self) -> usize {
        self.edges.len() - 1
    }

    /// Whether there is no graph in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The targets of graph `b`.
    ///
    /// # Panics
    /// If there is no such graph.
    pub fn targets(&self, b: usize) -> Range<usize> {
        self.targets[b]..self.targets[b + 1]
    }

    /// The sources of graph `b`.
    ///
    /// # Panics
    /// If there is no such graph.
    pub fn sources(&self, b: usize) -> Range<usize> {
        self.sources[b]..self.sources[b + 1]
    }

    /// The numbers of the edges of graph `b`.
    ///
    /// # Panics
    /// If there is no such graph.
    pub fn edges(&self, b: usize) -> Range<usize> {
        self.edges[b]..self.edges[b + 1]
    }
}
