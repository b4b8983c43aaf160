//! Edges that are there more than once.

use super::Graph;

/// A graph without repeated edges, and what was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithoutDuplicates {
    /// The graph that is left.
    pub graph: Graph,
    /// The number of edges that were removed.
    pub removed: usize,
    /// The number that each edge of the new graph had in the old one.
    pub kept: Vec<usize>,
}

impl Graph {
    /// The number of edges that repeat one with the same ends.
    ///
    /// A repeated edge counts as often as it is there: in the sum of weights that others are divided
    /// by, and in what the target receives.
    pub fn duplicates(&self) -> usize {
        let rows = (0..self.targets()).map(|target| self.by_target.row(target));
        rows.map(|row| row.windows(2).filter(|pair| pair[0] == pair[1]).count())
            .sum()
    }

    /// Returns the graph with every edge once: of edges with the same ends it keeps the first that the caller listed.
    /// The edges that are kept stay in order and are renumbered.
    ///
    /// ```
    /// use bochner_graph::Graph;
    ///
    /// let graph = Graph::from_edges(2, [(0, 1), (1, 0), (0, 1)])?;
    /// assert_eq!(graph.duplicates(), 1);
    /// let once = graph.without_duplicates();
    /// assert_eq!((once.removed, once.kept), (1, vec![0, 1]));
    /// assert_eq!(once.graph.duplicates(), 0);
    /// # Ok::<(), bochner_graph::Error>(())
    /// ```
    pub fn without_duplicates(&self) -> WithoutDuplicates {
        let mut kept: Vec<usize> = (0..self.targets())
            .flat_map(|i| self.first_edges(i))
            .collect();
        kept.sort_unstable();
        let edges = self.edges();
        let (from, to): (Vec<u32>, Vec<u32>) = kept
            .iter()
            .map(|&edge| (edges[edge].0 as u32, edges[edge].1 as u32))
            .unzip();
        WithoutDuplicates {
            graph: Self::sorted(self.targets(), self.sources(), &from, &to),
            removed: edges.len() - kept.len(),
            kept,
        }
    }

    /// The numbers of a target's edges, the first from each source.
    fn first_edges(&self, target: usize) -> impl Iterator<Item = usize> + '_ {
        // Sorted by source, and those of one source by their numbers.
        let mut last = None;
        let fresh = move |&(source, _): &(usize, usize)| last.replace(source) != Some(source);
        self.in_edges(target).filter(fresh).map(|(_, edge)| edge)
    }
}
