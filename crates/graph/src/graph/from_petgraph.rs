//! Graphs of the petgraph crate.

use super::Graph;
use crate::Error;
use petgraph::visit::{EdgeRef, GraphProp, IntoEdgeReferences, NodeIndexable};

impl Graph {
    /// A square graph from one of petgraph's: an edge $(a \to b)$ there is one here, an undirected
    /// edge is one in each direction (a self loop only one).
    ///
    /// Edges are numbered as petgraph lists them; the second direction of an undirected edge follows
    /// the first. Node `i` is the one whose index there is `i`; an index that has been freed is a node
    /// without edges.
    ///
    /// # Errors
    /// [`Error::TooMany`] beyond $2^{32} - 1$ nodes or edges.
    ///
    /// ```
    /// use bochner_graph::Graph;
    /// use bochner_graph::petgraph::graph::UnGraph;
    ///
    /// let path = UnGraph::<(), ()>::from_edges([(0, 1), (1, 2)]);
    /// let graph = Graph::from_petgraph(&path)?;
    /// assert_eq!(graph.edges(), [(0, 1), (1, 0), (1, 2), (2, 1)]);
    /// # Ok::<(), bochner_graph::Error>(())
    /// ```
    pub fn from_petgraph<G>(graph: G) -> Result<Self, Error>
    where
        G: IntoEdgeReferences + NodeIndexable + GraphProp,
    {
        let directed = graph.is_directed();
        let edges = graph.edge_references().flat_map(|edge| {
            let (a, b) = (graph.to_index(edge.source()), graph.to_index(edge.target()));
            let back = (!directed && a != b).then_some((b, a));
            [Some((a, b)), back].into_iter().flatten()
        });
        Self::from_edges(graph.node_bound(), edges)
    }
}
