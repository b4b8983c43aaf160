//! Graphs with their nodes renumbered.

use super::Graph;
use crate::Error;
use bochner_numerics::argument;

impl Graph {
    /// The graph in which node `i` is called `numbers[i]`; the edges keep their numbers.
    ///
    /// # Errors
    /// [`Error::NotSquare`]; [`Error::Argument`] unless there is one number for each node;
    /// [`Error::NotDistinct`] unless the numbers are those of the nodes, each once.
    ///
    /// ```
    /// use bochner_graph::Graph;
    ///
    /// let graph = Graph::from_edges(3, [(0, 1), (1, 2)])?;
    /// assert_eq!(graph.permuted(&[2, 0, 1])?.edges(), [(2, 0), (0, 1)]);
    /// # Ok::<(), bochner_graph::Error>(())
    /// ```
    pub fn permuted(&self, numbers: &[usize]) -> Result<Self, Error> {
        self.expect_square("a permutation of the nodes")?;
        self.permuted_apart(numbers, numbers)
    }

    /// The graph in which target `i` is called `targets[i]` and source `j` is called `sources[j]`;
    /// the edges keep their numbers.
    ///
    /// # Errors
    /// [`Error::Argument`] and [`Error::NotDistinct`], like [`permuted`](Self::permuted).
    pub fn permuted_apart(&self, targets: &[usize], sources: &[usize]) -> Result<Self, Error> {
        check("targets", self.targets(), targets)?;
        check("sources", self.sources(), sources)?;
        let edges = self.edges().into_iter();
        let renamed = edges.map(|(source, target)| (sources[source], targets[target]));
        Self::bipartite(self.targets(), self.sources(), renamed)
    }
}

fn check(what: &'static str, count: usize, numbers: &[usize]) -> Result<(), Error> {
    argument::shape(what, &[count], &[numbers.len()])?;
    let mut seen = vec![false; count];
    for (at, &got) in numbers.iter().enumerate() {
        if seen.get(got) != Some(&false) {
            let limit = count;
            return Err(Error::NotDistinct {
                what,
                at,
                got,
                limit,
            });
        }
        seen[got] = true;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_gives_the_graph_back() {
        let graph = Graph::bipartite(3, 2, [(1, 2), (0, 0), (1, 0)]).unwrap();
        let there = graph.permuted_apart(&[1, 2, 0], &[1, 0]).unwrap();
        assert_eq!(there.edges(), [(0, 0), (1, 1), (0, 1)]);
        assert_eq!(there.permuted_apart(&[2, 0, 1], &[1, 0]).unwrap(), graph);
    }

    #[test]
    fn what_is_no_permutation_is_refused() {
        let graph = Graph::from_edges(3, [(0, 1)]).unwrap();
        for (numbers, place) in [([0, 1, 1], 2), ([0, 3, 1], 1)] {
            let got = graph.permuted(&numbers);
            assert!(matches!(got, Err(Error::NotDistinct { at, .. }) if at == place));
        }
        assert!(matches!(graph.permuted(&[0]), Err(Error::Argument(_))));
        let bipartite = Graph::bipartite(1, 2, []).unwrap();
        assert!(matches!(
            bipartite.permuted(&[0]),
            Err(Error::NotSquare { .. })
        ));
    }
}
