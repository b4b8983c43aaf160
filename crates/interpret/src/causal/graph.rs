//! Graphs whose edges say at each end whether the node there is a cause.

use crate::Error;
use bochner_numerics::argument;
use std::fmt;

/// The mark of an edge at one of its ends, which tells about the node there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It is not known whether the node is a cause of the other one.
    Circle,
    /// The node is no cause of the other one, nor of what the samples were selected by.
    Arrow,
    /// The node is a cause of the other one, or of what the samples were selected by.
    Tail,
}

/// A graph with at most one edge between two nodes, and a [`Mark`] at either end of each.
///
/// A directed acyclic graph has edges `-->` alone. A maximal ancestral graph stands for one of which some nodes are
/// not observed: `<->` says that two nodes have a cause in common that is latent, `---` that samples were selected by
/// an effect of both. A partial ancestral graph has circles where the graphs that have the same independences
/// differ.
///
/// It is printed one edge after another, as in `0 o-> 1, 1 <-> 2`.
///
/// ```
/// use bochner_interpret::{Mark, MixedGraph};
///
/// let graph = MixedGraph::directed(3, &[(0, 2), (2, 1)])?;
/// assert_eq!(graph.to_string(), "0 --> 2, 1 <-- 2");
/// assert_eq!(graph.mark_at(2, 0), Some(Mark::Arrow));
/// assert_eq!(graph.mark_at(0, 1), None);
/// # Ok::<(), bochner_interpret::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixedGraph {
    nodes: usize,
    /// At `node * nodes + other` what stands at `node` on its edge with `other`.
    marks: Vec<Option<Mark>>,
}

impl MixedGraph {
    /// The directed graph of these causes and effects.
    ///
    /// # Errors
    /// The errors of [`from_edges`](Self::from_edges).
    pub fn directed(nodes: usize, edges: &[(usize, usize)]) -> Result<Self, Error> {
        let edge = |&(cause, effect)| (cause, Mark::Tail, Mark::Arrow, effect);
        let edges: Vec<_> = edges.iter().map(edge).collect();
        Self::from_edges(nodes, &edges)
    }

    /// The graph of these edges, each of them a node, the mark there, the mark at the other node, and that node.
    ///
    /// # Errors
    /// [`Error::Argument`] for a node that is not there, [`Error::RepeatedEdge`] for an edge from a node to itself
    /// or a second edge between two nodes. Directed cycles are not looked for.
    pub fn from_edges(nodes: usize, edges: &[(usize, Mark, Mark, usize)]) -> Result<Self, Error> {
        let mut graph = Self::without_edges(nodes);
        for &(a, at_a, at_b, b) in edges {
            for node in [a, b] {
                argument::index("edges", node, nodes)?;
            }
            if a == b || graph.adjacent(a, b) {
                return Err(Error::RepeatedEdge { nodes: [a, b] });
            }
            graph.set(a, b, at_a);
            graph.set(b, a, at_b);
        }
        Ok(graph)
    }

    fn without_edges(nodes: usize) -> Self {
        let marks = vec![None; nodes * nodes];
        Self { nodes, marks }
    }

    /// All nodes joined by edges with two circles.
    pub(super) fn complete(nodes: usize) -> Self {
        let mut graph = Self::without_edges(nodes);
        for (a, b) in graph.pairs() {
            graph.set(a, b, Mark::Circle);
            graph.set(b, a, Mark::Circle);
        }
        graph
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The mark at `node` on its edge with `other`; `None` where there is no edge.
    ///
    /// # Panics
    /// If a node is not there.
    pub fn mark_at(&self, node: usize, other: usize) -> Option<Mark> {
        assert!(other < self.nodes, "node {other} of {}", self.nodes);
        self.marks[node * self.nodes + other]
    }

    /// Whether an edge joins the two.
    ///
    /// # Panics
    /// If a node is not there.
    pub fn adjacent(&self, a: usize, b: usize) -> bool {
        self.mark_at(a, b).is_some()
    }

    /// The nodes that an edge joins with this one, in ascending order.
    ///
    /// # Panics
    /// If the node is not there.
    pub fn neighbours(&self, node: usize) -> impl Iterator<Item = usize> + use<> {
        let row = &self.marks[node * self.nodes..][..self.nodes];
        let joined = |(other, mark): (usize, &Option<Mark>)| mark.is_some().then_some(other);
        let joined: Vec<usize> = row.iter().enumerate().filter_map(joined).collect();
        joined.into_iter()
    }

    /// All pairs of nodes, the smaller one first.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let nodes = self.nodes;
        (0..nodes).flat_map(move |a| (a + 1..nodes).map(move |b| (a, b)))
    }

    /// All $(a, b, c)$ with edges $a - b - c$ and $a \ne c$.
    pub(super) fn triples(&self) -> Vec<(usize, usize, usize)> {
        let around = |b: usize| {
            let ends = move |a: usize| self.neighbours(b).map(move |c| (a, b, c));
            self.neighbours(b).flat_map(ends)
        };
        let triples = (0..self.nodes).flat_map(around);
        triples.filter(|(a, _, c)| a != c).collect()
    }

    /// Applies a rule to all triples, as they are before it is; returns whether any of them has changed.
    pub(super) fn apply_to_triples(
        &mut self,
        mut rule: impl FnMut(&mut Self, [usize; 3]) -> bool,
    ) -> bool {
        let triples = self.triples().into_iter();
        triples.fold(false, |changed, (a, b, c)| changed | rule(self, [a, b, c]))
    }

    /// Whether this mark stands at `node` on its edge with `other`.
    pub(super) fn has(&self, mark: Mark, node: usize, other: usize) -> bool {
        self.mark_at(node, other) == Some(mark)
    }

    /// Whether the edge is `cause --> effect`.
    pub(super) fn is_directed(&self, cause: usize, effect: usize) -> bool {
        self.has(Mark::Tail, cause, effect) && self.has(Mark::Arrow, effect, cause)
    }

    /// Whether the edge may be `cause --> effect` in a graph that has no circles any more.
    pub(super) fn may_be_directed(&self, cause: usize, effect: usize) -> bool {
        self.adjacent(cause, effect)
            && !self.has(Mark::Arrow, cause, effect)
            && !self.has(Mark::Tail, effect, cause)
    }

    /// The nodes from which a path leads to one of `targets`, or which are one, each step of which `step` allows.
    pub(super) fn ancestors(
        &self,
        targets: &[usize],
        step: impl Fn(&Self, usize, usize) -> bool,
    ) -> Vec<bool> {
        let mut found = vec![false; self.nodes];
        let mut open = targets.to_vec();
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut found[node], true) {
                open.extend(self.neighbours(node).filter(|&from| step(self, from, node)));
            }
        }
        found
    }

    fn set(&mut self, node: usize, other: usize, mark: Mark) {
        self.marks[node * self.nodes + other] = Some(mark);
    }

    /// Replaces a circle; says whether there was one. Marks that stand are kept: rules contradict each other only
    /// where tests have erred.
    pub(super) fn orient(&mut self, node: usize, other: usize, mark: Mark) -> bool {
        let circle = self.has(Mark::Circle, node, other);
        if circle {
            self.set(node, other, mark);
        }
        circle
    }

    pub(super) fn remove_edge(&mut self, a: usize, b: usize) {
        self.marks[a * self.nodes + b] = None;
        self.marks[b * self.nodes + a] = None;
    }

    /// Puts circles at all ends.
    pub(super) fn forget_marks(&mut self) {
        for mark in self.marks.iter_mut().flatten() {
            *mark = Mark::Circle;
        }
    }
}

impl fmt::Display for MixedGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let edges = self.pairs().filter_map(|(a, b)| {
            let (left, right) = (self.mark_at(a, b)?, self.mark_at(b, a)?);
            let left = ["o", "<", "-"][left as usize];
            let right = ["o", ">", "-"][right as usize];
            Some(format!("{a} {left}-{right} {b}"))
        });
        f.write_str(&edges.collect::<Vec<_>>().join(", "))
    }
}
