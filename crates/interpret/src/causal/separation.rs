//! Independence as a known graph implies it.

use super::independence::distinct;
use super::{Independence, Mark, MixedGraph};
use crate::Error;

/// Independence by m-separation in a known graph, of which some nodes are latent and others select the samples. What is
/// found of it has nodes of its own numbers: node $i$ is the $i$-th that is observed.
///
/// Two nodes are separated by a set if no path joins them on which every collider, a node with arrows from either
/// side, has itself or a descendant in the set, and no other node is in the set. In a directed acyclic graph this is
/// d-separation.
///
/// # Reference
/// Richardson, Spirtes, *Ancestral graph Markov models*, 2002.
///
/// ```
/// use bochner_interpret::{Independence, MixedGraph, Separation};
///
/// // Node 3 is a cause of 0 and 1 that is not observed, and 2 an effect of both.
/// let graph = MixedGraph::directed(4, &[(3, 0), (3, 1), (0, 2), (1, 2)])?;
/// let oracle = Separation::new(&graph, &[0, 1, 2], &[])?;
/// assert!(!oracle.independent(0, 1, &[])?);
/// // Nothing but node 3 itself would separate the two.
/// let whole = Separation::new(&graph, &[0, 1, 2, 3], &[])?;
/// assert!(whole.independent(0, 1, &[3])? && !whole.independent(0, 1, &[2, 3])?);
/// # Ok::<(), bochner_interpret::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Separation<'a> {
    graph: &'a MixedGraph,
    observed: &'a [usize],
    selected: &'a [usize],
}

impl<'a> Separation<'a> {
    /// Node $i$ of the oracle is node `observed[i]` of the graph; on those in `selected` everything is conditioned.
    ///
    /// # Errors
    /// [`Error::Argument`] for a node that is not there, [`Error::RepeatedNode`] for one that is named twice,
    /// [`Error::Undecided`] for a graph with circles, [`Error::Cyclic`] for a node that is its own cause.
    pub fn new(
        graph: &'a MixedGraph,
        observed: &'a [usize],
        selected: &'a [usize],
    ) -> Result<Self, Error> {
        let named = observed.iter().chain(selected).copied();
        distinct("observed or selected nodes", named, graph.nodes())?;
        for (a, b) in graph.pairs() {
            if graph.has(Mark::Circle, a, b) || graph.has(Mark::Circle, b, a) {
                return Err(Error::Undecided { nodes: [a, b] });
            }
        }
        for node in 0..graph.nodes() {
            let causes = graph
                .neighbours(node)
                .filter(|&cause| graph.is_directed(cause, node));
            let causes: Vec<usize> = causes.collect();
            if graph.ancestors(&causes, MixedGraph::is_directed)[node] {
                return Err(Error::Cyclic { node });
            }
        }
        Ok(Self {
            graph,
            observed,
            selected,
        })
    }

    /// Whether a walk joins two nodes of the graph that `known` leaves open.
    fn connected(&self, from: usize, to: usize, known: &[usize]) -> bool {
        let graph = self.graph;
        let causes = graph.ancestors(known, MixedGraph::is_directed);
        let arrow_at = |node, other| graph.has(Mark::Arrow, node, other);
        // Walks by their last node and whether an arrow led into it; that walks may cross themselves changes nothing.
        let mut seen = vec![[false; 2]; graph.nodes()];
        let start = graph.neighbours(from);
        let mut open: Vec<_> = start.map(|node| (node, arrow_at(node, from))).collect();
        while let Some((node, into)) = open.pop() {
            if node == to {
                return true;
            }
            if std::mem::replace(&mut seen[node][usize::from(into)], true) {
                continue;
            }
            for next in graph.neighbours(node) {
                let passes = match into && arrow_at(node, next) {
                    true => causes[node],
                    false => !known.contains(&node),
                };
                if passes {
                    open.push((next, arrow_at(next, node)));
                }
            }
        }
        false
    }
}

impl Independence for Separation<'_> {
    fn nodes(&self) -> usize {
        self.observed.len()
    }

    fn independent(&self, i: usize, j: usize, given: &[usize]) -> Result<bool, Error> {
        let both = [i, j].into_iter();
        distinct("nodes", both.chain(given.iter().copied()), self.nodes())?;
        let given = given.iter().map(|&node| self.observed[node]);
        let known: Vec<usize> = given.chain(self.selected.iter().copied()).collect();
        Ok(!self.connected(self.observed[i], self.observed[j], &known))
    }
}
