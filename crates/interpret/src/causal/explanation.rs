//! The fewest tokens without which a prediction changes.

use super::MixedGraph;
use super::possible_d_sep::ReachedSets;
use crate::Error;
use bochner_numerics::argument;

/// The smallest set of nodes without which the prediction at `target` changes, as `changes` says; `None` if no set
/// of at most `largest` nodes changes it.
///
/// The sets are asked for by size, and those of a size by the sum of their distances from the target. Only sets
/// count that explain the target in the graph: from the target to each node leads a path through nodes of the set,
/// on which every node between two others is a collider, or joined to both in a triangle. The target itself, the
/// prediction, is a node of the graph.
///
/// # Errors
/// [`Error::Argument`] for a target that is not in the graph, or sets of no nodes.
///
/// # Numerics
/// `changes` is called once for each set, exponentially often in `largest` where many nodes are joined. A caller
/// masks the nodes of the set and predicts again.
///
/// # Reference
/// Rohekar, Gurwicz, Nisimov, *Causal interpretation of self-attention in pre-trained transformers*, 2023.
///
/// ```
/// use bochner_interpret::{MixedGraph, smallest_explanation};
///
/// // Node 3 stands for the prediction: 0 and 1 are its causes, and 2 is one of 0.
/// let graph = MixedGraph::directed(4, &[(0, 3), (1, 3), (2, 0)])?;
/// let changes = |masked: &[usize]| masked.contains(&0) && masked.contains(&1);
/// assert_eq!(smallest_explanation(&graph, 3, 2, changes)?, Some(vec![0, 1]));
/// assert_eq!(smallest_explanation(&graph, 3, 1, changes)?, None);
/// # Ok::<(), bochner_interpret::Error>(())
/// ```
pub fn smallest_explanation(
    graph: &MixedGraph,
    target: usize,
    largest: usize,
    mut changes: impl FnMut(&[usize]) -> bool,
) -> Result<Option<Vec<usize>>, Error> {
    argument::index("target", target, graph.nodes())?;
    argument::at_least_one("largest", largest)?;
    let mut others = vec![true; graph.nodes()];
    others[target] = false;
    let mut sets = ReachedSets::new(graph, target, others);
    for size in 1..=largest.min(graph.nodes() - 1) {
        let found = sets.of_size(size).into_iter().find(|set| changes(set));
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causal::testing::parsed;

    #[test]
    fn sets_are_asked_for_by_size_and_distance() {
        // Node 2 is reached through the collider 1, node 4 not at all.
        let graph = parsed(5, "0 <-> 1, 1 <-o 2, 0 <-o 3, 3 o-> 4");
        let mut asked = Vec::new();
        let found = smallest_explanation(&graph, 0, 9, |set| {
            asked.push(set.to_vec());
            false
        });
        assert_eq!(found.unwrap(), None);
        assert_eq!(
            asked,
            [vec![1], vec![3], vec![1, 3], vec![1, 2], vec![1, 2, 3]]
        );
        let found = smallest_explanation(&graph, 0, 9, |set| set.contains(&2)).unwrap();
        assert_eq!(found, Some(vec![1, 2]));
    }

    #[test]
    fn targets_that_are_not_there_are_refused() {
        let graph = parsed(2, "0 o-o 1");
        let of = |target, largest| smallest_explanation(&graph, target, largest, |_| true);
        assert_eq!(of(1, 1).unwrap(), Some(vec![0]));
        assert!(matches!(of(2, 1), Err(Error::Argument(_))));
        assert!(matches!(of(1, 0), Err(Error::Argument(_))));
    }
}
