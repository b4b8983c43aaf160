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
/// [`Error::Argument`] for a target that is not in the graph, or sets of no nodes; the first error of `changes`, after
/// which it is not asked again.
///
/// # Numerics
/// `changes` is called once for each set, exponentially often in `largest` where many nodes are joined. A caller
/// masks the nodes of the set and predicts again.
///
/// # Reference
/// Rohekar, Gurwicz, Nisimov, *Causal interpretation of self-attention in pre-trained transformers*, 2023.
///
/// ```
/// use bochner_interpret::{Error, MixedGraph, smallest_explanation};
///
/// // Node 3 stands for the prediction: 0 and 1 are its causes, and 2 is one of 0.
/// let graph = MixedGraph::directed(4, &[(0, 3), (1, 3), (2, 0)])?;
/// let changes = |masked: &[usize]| Ok::<_, Error>(masked.contains(&0) && masked.contains(&1));
/// assert_eq!(smallest_explanation(&graph, 3, 2, changes)?, Some(vec![0, 1]));
/// assert_eq!(smallest_explanation(&graph, 3, 1, changes)?, None);
/// # Ok::<(), Error>(())
/// ```
pub fn smallest_explanation<E: From<Error>>(
    graph: &MixedGraph,
    target: usize,
    largest: usize,
    mut changes: impl FnMut(&[usize]) -> Result<bool, E>,
) -> Result<Option<Vec<usize>>, E> {
    argument::index("target", target, graph.nodes()).map_err(Error::from)?;
    argument::at_least_one("largest", largest).map_err(Error::from)?;
    let mut others = vec![true; graph.nodes()];
    others[target] = false;
    let mut sets = ReachedSets::new(graph, target, others);
    for size in 1..=largest.min(graph.nodes() - 1) {
        for set in sets.of_size(size) {
            if changes(&set)? {
                return Ok(Some(set));
            }
        }
    }
    Ok(None)
}
