//! The sets that may separate a node from others in a graph that is not yet oriented.

use super::{Mark, MixedGraph};
use std::collections::{BTreeSet, VecDeque};

/// Returns the distance of each node from `root` along walks that stay `inside`, `None` if no walk leads there.
///
/// On the walks every node between two others has arrows from both, or the three are joined to a triangle. A path that
/// conditioning opens may look like this in one of the graphs that the marks leave possible.
pub(super) fn distances(
    graph: &MixedGraph,
    root: usize,
    inside: impl Fn(usize) -> bool,
) -> Vec<Option<usize>> {
    let mut distances = vec![None; graph.nodes()];
    let mut seen = vec![false; graph.nodes() * graph.nodes()];
    let mut open: VecDeque<_> = graph.neighbours(root).map(|node| (root, node, 1)).collect();
    while let Some((before, node, distance)) = open.pop_front() {
        let again = std::mem::replace(&mut seen[before * graph.nodes() + node], true);
        if again || node == root || !inside(node) {
            continue;
        }
        distances[node].get_or_insert(distance);
        let next = graph
            .neighbours(node)
            .filter(|&next| passes(graph, before, node, next));
        open.extend(next.map(|next| (node, next, distance + 1)));
    }
    distances
}

fn passes(graph: &MixedGraph, before: usize, node: usize, next: usize) -> bool {
    let arrow = |other| graph.has(Mark::Arrow, node, other);
    before != next && (graph.adjacent(before, next) || arrow(before) && arrow(next))
}

/// Sets of nodes in which every node is reached from the root through other nodes of its set.
pub(super) struct ReachedSets<'a> {
    graph: &'a MixedGraph,
    root: usize,
    allowed: Vec<bool>,
    distances: Vec<Option<usize>>,
    size: usize,
    /// In ascending order, as are the nodes of each.
    sets: BTreeSet<Vec<usize>>,
}

impl<'a> ReachedSets<'a> {
    /// The empty set, to be grown by nodes that are `allowed`.
    pub(super) fn new(graph: &'a MixedGraph, root: usize, allowed: Vec<bool>) -> Self {
        Self {
            graph,
            root,
            distances: distances(graph, root, |node| allowed[node]),
            allowed,
            size: 0,
            sets: BTreeSet::from([Vec::new()]),
        }
    }

    /// All sets of one node more. Every such set has a node, the last one reached, without which it is a set of the
    /// size before.
    fn grow(&mut self) {
        let mut grown = BTreeSet::new();
        for set in &self.sets {
            let more = (0..self.graph.nodes()).filter(|&node| {
                self.allowed[node] && self.distances[node].is_some() && !set.contains(&node)
            });
            for node in more {
                let mut larger = set.clone();
                larger.insert(larger.partition_point(|&other| other < node), node);
                if !grown.contains(&larger) && self.reaches_all(&larger) {
                    grown.insert(larger);
                }
            }
        }
        self.sets = grown;
        self.size += 1;
    }

    fn reaches_all(&self, set: &[usize]) -> bool {
        let reached = distances(self.graph, self.root, |node| set.contains(&node));
        set.iter().all(|&node| reached[node].is_some())
    }

    /// The sets of so many nodes, those whose nodes lie nearest to the root first.
    pub(super) fn of_size(&mut self, size: usize) -> Vec<Vec<usize>> {
        while self.size < size && !self.sets.is_empty() {
            self.grow();
        }
        let mut sets: Vec<Vec<usize>> = self.sets.iter().cloned().collect();
        let far = |set: &Vec<usize>| -> usize {
            let distances = set.iter().filter_map(|&node| self.distances[node]);
            distances.sum()
        };
        sets.sort_by_key(far);
        sets
    }
}
