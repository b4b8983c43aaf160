//! Edges from a node to itself.

use super::Graph;
use crate::Error;
use crate::error::countable;

/// A graph with self loops, and what was added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithSelfLoops {
    /// The graph in which every node has a self loop.
    pub graph: Graph,
    /// The nodes that got one, in order; their edges are numbered after all others, in this order.
    pub added: Vec<usize>,
    /// The number of nodes that had one (or several) already.
    pub already_there: usize,
}

impl Graph {
    /// The graph with an edge from every node to itself. Those that are there stay, and keep their
    /// numbers; the new ones are numbered after them.
    ///
    /// # Errors
    /// [`Error::NotSquare`], or [`Error::TooMany`] if there are too many edges then.
    ///
    /// ```
    /// use bochner_graph::Graph;
    ///
    /// let graph = Graph::from_edges(3, [(0, 1), (1, 1)])?;
    /// let looped = graph.with_self_loops()?;
    /// assert_eq!((looped.added, looped.already_there), (vec![0, 2], 1));
    /// assert_eq!(looped.graph.edges(), [(0, 1), (1, 1), (0, 0), (2, 2)]);
    /// # Ok::<(), bochner_graph::Error>(())
    /// ```
    pub fn with_self_loops(&self) -> Result<WithSelfLoops, Error> {
        self.expect_square("a self loop")?;
        let lacks = |&node: &usize| {
            self.by_target
                .row(node)
                .binary_search(&(node as u32))
                .is_err()
        };
        let added: Vec<usize> = (0..self.targets()).filter(lacks).collect();
        let count = self.edge_count() + added.len();
        countable("edges", count)?;
        let loops = added.iter().map(|&node| (node, node));
        let edges = self.edges().into_iter().chain(loops);
        Ok(WithSelfLoops {
            graph: Self::from_edges(self.targets(), edges)?,
            already_there: self.targets() - added.len(),
            added,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_has_one_afterwards() {
        let graph = Graph::from_edges(4, [(3, 3), (0, 3), (3, 3), (1, 0)]).unwrap();
        let looped = graph.with_self_loops().unwrap();
        assert_eq!((looped.added, looped.already_there), (vec![0, 1, 2], 1));
        let again = looped.graph.with_self_loops().unwrap();
        assert_eq!((again.added, again.already_there), (vec![], 4));
        assert_eq!(again.graph, looped.graph);
        assert_eq!(again.graph.edges()[..4], graph.edges());
    }

    #[test]
    fn a_bipartite_graph_has_none() {
        let graph = Graph::bipartite(2, 3, [(2, 1)]).unwrap();
        assert!(matches!(
            graph.with_self_loops(),
            Err(Error::NotSquare {
                targets: 2,
                sources: 3,
                ..
            })
        ));
    }
}
