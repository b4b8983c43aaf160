//! Directed graphs, stored by target.

mod batch;
mod duplicates;
#[cfg(feature = "petgraph")]
mod from_petgraph;
mod self_loops;
mod written;

pub use batch::Batch;
pub use duplicates::WithoutDuplicates;
pub use self_loops::{LoopAttributes, WithSelfLoops};

use crate::Error;
use crate::compressed::{Rows, by_key, check_offsets};
use crate::error::countable;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use written::WrittenGraph;

/// A directed graph: edges $(j \to i)$ along which a target $i$ attends to a source $j$.
///
/// Targets and sources may be different nodes (a bipartite graph); where they are the same, the graph
/// is *square*. It is stored in compressed rows by target, which is what attention reads, and by
/// source, which is what its gradient reads. In each row the edges are sorted by their other end, so
/// that sums do not depend on the order in which the caller lists them, unless they are repeated; that
/// order is kept beside it, and everything that belongs to edges is given and returned in it.
///
/// Edges may be there more than once ([`duplicates`](Self::duplicates),
/// [`without_duplicates`](Self::without_duplicates)), and self loops are only there where the caller
/// has put them ([`with_self_loops`](Self::with_self_loops)). A graph may have no edges, or no nodes.
/// A clone costs nothing.
///
/// ```
/// use bochner_graph::Graph;
///
/// let graph = Graph::from_edges(3, [(0, 1), (2, 1), (1, 2)])?;
/// // The in-neighbours of node 1, with the numbers of the edges.
/// assert!(graph.in_edges(1).eq([(0, 0), (2, 1)]));
/// assert_eq!(graph.in_degree(0), 0);
/// # Ok::<(), bochner_graph::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenGraph", into = "WrittenGraph")]
pub struct Graph {
    pub(crate) by_target: Rows,
    /// The caller's number of each edge, in the order of `by_target`.
    pub(crate) order: Arc<[u32]>,
    pub(crate) by_source: Rows,
    /// The place in `by_target` of each edge, in the order of `by_source`.
    pub(crate) places: Arc<[u32]>,
}

impl Graph {
    /// A square graph from a list of its edges, pairs (source, target) of nodes below `nodes`.
    ///
    /// # Errors
    /// [`Error::NodeOutOfRange`] with the first edge that does not fit, [`Error::TooMany`] beyond
    /// $2^{32} - 1$ nodes or edges.
    pub fn from_edges(
        nodes: usize,
        edges: impl IntoIterator<Item = (usize, usize)>,
    ) -> Result<Self, Error> {
        Self::bipartite(nodes, nodes, edges)
    }

    /// A graph whose targets and sources are numbered apart, from a list of its edges, pairs
    /// (source, target). With as many of one as of the other it cannot be told from a square graph.
    ///
    /// The counts come with the targets first, as outputs have rows of targets; the edges come with the source first.
    /// PyTorch Geometric gives both with the source first: its `size=(sources, targets)` is
    /// `bipartite(targets, sources, ..)` here, and the rows of its `edge_index` are sources and targets as here.
    ///
    /// ```
    /// use bochner_graph::Graph;
    ///
    /// // Two targets and three sources; `size=(3, 2)` in PyTorch Geometric.
    /// let graph = Graph::bipartite(2, 3, [(2, 0), (1, 1)])?;
    /// assert_eq!((graph.targets(), graph.sources()), (2, 3));
    /// assert!(graph.in_edges(0).eq([(2, 0)]));
    /// # Ok::<(), bochner_graph::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`from_edges`](Self::from_edges).
    pub fn bipartite(
        targets: usize,
        sources: usize,
        edges: impl IntoIterator<Item = (usize, usize)>,
    ) -> Result<Self, Error> {
        countable("targets", targets)?;
        countable("sources", sources)?;
        let (mut from, mut to) = (Vec::new(), Vec::new());
        for (edge, (source, target)) in edges.into_iter().enumerate() {
            from.push(node("source", edge, source, sources)?);
            to.push(node("target", edge, target, targets)?);
        }
        countable("edges", from.len())?;
        Ok(Self::sorted(targets, sources, &from, &to))
    }

    /// A graph from its compressed rows: the sources of target `i` are
    /// `columns[offsets[i]..offsets[i + 1]]`. Edges are numbered as they stand there.
    ///
    /// # Errors
    /// [`Error::Offsets`] if the offsets do not cut the columns into rows, otherwise as
    /// [`from_edges`](Self::from_edges).
    ///
    /// ```
    /// use bochner_graph::Graph;
    ///
    /// let graph = Graph::from_rows(3, &[0, 0, 2], &[2, 0])?;
    /// assert_eq!((graph.targets(), graph.sources()), (2, 3));
    /// assert_eq!(graph.edges(), [(2, 1), (0, 1)]);
    /// # Ok::<(), bochner_graph::Error>(())
    /// ```
    pub fn from_rows(sources: usize, offsets: &[usize], columns: &[usize]) -> Result<Self, Error> {
        check_offsets("the targets", offsets, columns.len())?;
        let rows = offsets.windows(2).enumerate();
        let targets = rows.flat_map(|(target, ends)| (ends[0]..ends[1]).map(move |_| target));
        let edges = columns.iter().copied().zip(targets);
        Self::bipartite(offsets.len() - 1, sources, edges)
    }

    /// The graph of edges whose ends are in range.
    fn sorted(targets: usize, sources: usize, from: &[u32], to: &[u32]) -> Self {
        // Sorted by source first, then by target: each row comes out in order.
        let (by_source, edges) = by_key(sources, from, to.iter().copied());
        let (by_target, order) = by_source.transposed(targets);
        let order = order.iter().map(|&place| edges[place as usize]).collect();
        let (by_source, places) = by_target.transposed(sources);
        Self {
            by_target,
            order,
            by_source,
            places: places.into(),
        }
    }

    /// The number of targets.
    pub fn targets(&self) -> usize {
        self.by_target.count()
    }

    /// The number of sources.
    pub fn sources(&self) -> usize {
        self.by_source.count()
    }

    /// The number of edges.
    pub fn edge_count(&self) -> usize {
        self.order.len()
    }

    /// Whether targets and sources are equally many, and so may be the same nodes.
    pub fn is_square(&self) -> bool {
        self.targets() == self.sources()
    }

    /// All edges in the caller's order, pairs (source, target).
    pub fn edges(&self) -> Vec<(usize, usize)> {
        let mut edges = vec![(0, 0); self.edge_count()];
        for target in 0..self.targets() {
            for (source, edge) in self.in_edges(target) {
                edges[edge] = (source, target);
            }
        }
        edges
    }

    /// The sources of a target in their order, each with the number of its edge.
    ///
    /// # Panics
    /// If there is no such target.
    pub fn in_edges(&self, target: usize) -> impl Iterator<Item = (usize, usize)> + Clone + '_ {
        let places = self.by_target.places(target);
        let sources = self.by_target.row(target).iter();
        let edges = self.order[places].iter();
        sources
            .zip(edges)
            .map(|(&j, &edge)| (j as usize, edge as usize))
    }

    /// The targets of a source in their order, each with the number of its edge.
    ///
    /// # Panics
    /// If there is no such source.
    pub fn out_edges(&self, source: usize) -> impl Iterator<Item = (usize, usize)> + Clone + '_ {
        let places = self.places[self.by_source.places(source)].iter();
        let edges = places.map(|&place| self.order[place as usize] as usize);
        let targets = self.by_source.row(source).iter();
        targets.map(|&i| i as usize).zip(edges)
    }

    /// The number of edges that lead to a target.
    ///
    /// # Panics
    /// If there is no such target.
    pub fn in_degree(&self, target: usize) -> usize {
        self.by_target.row(target).len()
    }

    /// The number of edges that lead from a source.
    ///
    /// # Panics
    /// If there is no such source.
    pub fn out_degree(&self, source: usize) -> usize {
        self.by_source.row(source).len()
    }

    pub(crate) fn expect_square(&self, what: &'static str) -> Result<(), Error> {
        if self.is_square() {
            return Ok(());
        }
        Err(Error::NotSquare {
            what,
            targets: self.targets(),
            sources: self.sources(),
        })
    }
}

fn node(end: &'static str, edge: usize, got: usize, nodes: usize) -> Result<u32, Error> {
    if got < nodes {
        return Ok(got as u32);
    }
    Err(Error::NodeOutOfRange {
        edge,
        end,
        got,
        nodes,
    })
}
