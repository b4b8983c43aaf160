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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causal::testing::parsed;

    #[test]
    fn walks_pass_colliders_and_triangles_alone() {
        let graph = parsed(6, "0 o-> 1, 1 <-> 2, 2 o-o 3, 2 o-o 4, 3 o-o 4, 3 o-o 5");
        let got = distances(&graph, 0, |_| true);
        // Node 2 is no collider on the walks on to 3 and 4.
        assert_eq!(got, [None, Some(1), Some(2), None, None, None]);
        let got = distances(&graph, 2, |_| true);
        assert_eq!(got, [Some(2), Some(1), None, Some(1), Some(1), None]);
        let got = distances(&graph, 2, |node| node != 1);
        assert_eq!(got[0], None);
        // Node 2 is no collider on the walk on to 3, but joined to 1 and 3.
        let triangle = parsed(4, "0 <-> 1, 1 <-> 2, 1 o-o 3, 2 o-o 3");
        let got = distances(&triangle, 0, |_| true);
        assert_eq!(got, [None, Some(1), Some(2), Some(3)]);
    }

    #[test]
    fn sets_hold_the_nodes_that_they_are_reached_through() {
        let graph = parsed(4, "0 o-> 1, 1 <-> 2, 0 o-o 3");
        let mut sets = ReachedSets::new(&graph, 0, vec![true; 4]);
        assert_eq!(sets.of_size(0), [Vec::<usize>::new()]);
        assert_eq!(sets.of_size(1), [vec![1], vec![3]]);
        assert_eq!(sets.of_size(2), [vec![1, 3], vec![1, 2]]);
        assert_eq!(sets.of_size(3), [vec![1, 2, 3]]);
        assert!(sets.of_size(4).is_empty());
        let mut without = ReachedSets::new(&graph, 0, vec![true, false, true, true]);
        assert_eq!(without.of_size(1), [vec![3]]);
    }

    #[test]
    fn a_node_that_one_walk_ends_at_may_be_passed_by_another() {
        // Node 3 is reached over 1 first, where it is no collider; over 2 it is one.
        let graph = parsed(5, "0 <-> 1, 0 <-> 2, 1 <-- 3, 2 <-> 3, 3 <-> 4");
        let got = distances(&graph, 0, |_| true);
        assert_eq!(got, [None, Some(1), Some(1), Some(2), Some(3)]);
    }

    #[test]
    fn sets_of_a_size_come_by_the_sum_of_their_distances() {
        // Nodes 1 and 4 are next to the root, 2 and 3 one step on.
        let graph = parsed(5, "0 <-> 1, 0 <-> 4, 1 <-> 2, 1 <-> 3");
        let sets = ReachedSets::new(&graph, 0, vec![true; 5]).of_size(3);
        assert_eq!(sets, [vec![1, 2, 4], vec![1, 3, 4], vec![1, 2, 3]]);
    }
}
