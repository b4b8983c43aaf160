//! Lists of edges in the form of the files: in both directions, with loops and repetitions.

use super::GraphDefect;
use bochner_numerics::argument;

/// The edges of a graph as they are stored.
///
/// An entry $[i, j]$ says that $j$ is in the list of neighbours of $i$. Entries are ordered by $i$; the
/// entries of one node keep the order of its list.
///
/// ```
/// use bochner_datasets::EdgeList;
///
/// let edges = EdgeList::new(3, vec![[0, 1], [0, 1], [0, 0], [1, 0]])?;
/// assert_eq!(edges.entries(), [[0, 1], [0, 1], [0, 0], [1, 0]]);
/// assert_eq!(edges.undirected(), [[0, 1]]);
/// # Ok::<(), bochner_datasets::GraphDefect>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeList {
    nodes: usize,
    entries: Vec<[usize; 2]>,
}

impl EdgeList {
    /// The edges of a graph with nodes from 0 to `nodes`, exclusive. They are ordered by their
    /// first node.
    ///
    /// # Errors
    /// [`GraphDefect::Argument`] for a node that is not below `nodes`.
    pub fn new(nodes: usize, mut entries: Vec<[usize; 2]>) -> Result<Self, GraphDefect> {
        for &node in entries.as_flattened() {
            argument::index("entries", node, nodes)?;
        }
        entries.sort_by_key(|&[from, _]| from);
        Ok(Self { nodes, entries })
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The entries.
    pub fn entries(&self) -> &[[usize; 2]] {
        &self.entries
    }

    /// Each edge once as $[i, j]$ with $i < j$, in increasing order; no self loops.
    pub fn undirected(&self) -> Vec<[usize; 2]> {
        let proper = self.entries.iter().filter(|[i, j]| i != j);
        let mut edges: Vec<_> = proper.map(|&[i, j]| [i.min(j), i.max(j)]).collect();
        edges.sort_unstable();
        edges.dedup();
        edges
    }
}
