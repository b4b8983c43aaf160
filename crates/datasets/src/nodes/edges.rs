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
/// assert_eq!(edges.undirected(), [[0, 1]]);
/// let counts = edges.counts();
/// assert_eq!((counts.entries, counts.self_loops, counts.repetitions), (4, 1, 1));
/// assert_eq!((counts.undirected, counts.alone), (1, 1));
/// # Ok::<(), bochner_datasets::GraphDefect>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeList {
    nodes: usize,
    entries: Vec<[usize; 2]>,
}

/// The numbers of edges, self loops and repetitions in an [`EdgeList`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeCounts {
    /// Entries as stored.
    pub entries: usize,
    /// Entries that lead from a node to itself.
    pub self_loops: usize,
    /// Nodes with an entry that leads to themselves.
    pub looped_nodes: usize,
    /// Other entries that repeat an earlier entry.
    pub repetitions: usize,
    /// Edges without direction, repetitions and self loops.
    pub undirected: usize,
    /// Nodes with no edge to another node.
    pub alone: usize,
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

    /// Counts edges, self loops and repetitions.
    pub fn counts(&self) -> EdgeCounts {
        let mut distinct = self.entries.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let undirected = self.undirected();
        let loops = |entries: &[[usize; 2]]| entries.iter().filter(|[i, j]| i == j).count();
        let (self_loops, looped_nodes) = (loops(&self.entries), loops(&distinct));
        EdgeCounts {
            entries: self.entries.len(),
            self_loops,
            looped_nodes,
            repetitions: (self.entries.len() - self_loops) - (distinct.len() - looped_nodes),
            undirected: undirected.len(),
            alone: self.nodes - touched(self.nodes, &undirected),
        }
    }
}

fn touched(nodes: usize, edges: &[[usize; 2]]) -> usize {
    let mut seen = vec![false; nodes];
    for &node in edges.as_flattened() {
        seen[node] = true;
    }
    seen.into_iter().filter(|&seen| seen).count()
}
