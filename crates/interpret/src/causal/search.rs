//! The search for the graphs that have the independences that are seen.

use super::possible_d_sep::ReachedSets;
use super::{Independence, MixedGraph, orientation, tails};
use crate::Error;
use std::collections::{BTreeMap, BTreeSet};

/// What is known of the causes among some nodes, some of whose causes may not be among them.
///
/// ```
/// use bochner_interpret::{CausalStructure, Correlations, ValueCovariance, ZeroCorrelation};
/// use ndarray::array;
///
/// // The total effects of 0 -> 2 <- 1 and 2 -> 3.
/// let a = array![
///     [1.0, 0.0, 0.0, 0.0],
///     [0.0, 1.0, 0.0, 0.0],
///     [0.5, 0.5, 1.0, 0.0],
///     [0.5, 0.5, 1.0, 1.0],
/// ];
/// let correlations = Correlations::of_attention(a.view(), ValueCovariance::Identity)?;
/// let independence = ZeroCorrelation::new(&correlations, 1e-9)?;
/// let structure = CausalStructure::find(&independence, None)?;
/// // Node 2 causes node 3; whether 0 and 1 cause 2, or share latent causes with it, nothing tells.
/// assert_eq!(structure.graph.to_string(), "0 o-> 2, 1 o-> 2, 2 --> 3");
/// assert_eq!(structure.separating_set(0, 3), Some(&[2][..]));
/// # Ok::<(), bochner_interpret::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CausalStructure {
    /// The partial ancestral graph: what all graphs with these independences have in common.
    pub graph: MixedGraph,
    separators: SeparatingSets,
}

impl CausalStructure {
    /// Finds the structure by asking for independences, iteratively.
    ///
    /// The search begins with all nodes joined by $\circ\!\!-\!\!\circ$. In round $r = 0, 1, \dots$ it removes an
    /// edge between $i$ and $j$ if they are independent given $r$ nodes, each a possible cause of $i$ or $j$, and each
    /// reached from $i$ through others of them along a path that may be opened (or all from $j$). After each round
    /// the marks are erased, and put anew by rules R0 to R4; the last round is the one in which nothing was left to
    /// ask. Rules R5 to R10 then find the tails.
    ///
    /// `largest` ends the search at sets of that size: two nodes that only a larger set separates then stay joined,
    /// and marks that follow from such an edge are uncertain. With [`FisherZ`](super::FisherZ), which refuses larger sets,
    /// `largest` is at most the number of samples less 4.
    ///
    /// # Errors
    /// [`Error::TooFewTokens`] below three nodes, and the errors of the questions.
    ///
    /// # Numerics
    /// With answers that are right for some graph with latent and selecting nodes, the result is the partial
    /// ancestral graph of it, with all arrows and tails that can be known. Where answers err, a mark that was put
    /// first stands, and the result depends on the order of the nodes. The number of questions is exponential in
    /// the number of nodes around those that stay joined.
    ///
    /// # Reference
    /// Rohekar, Nisimov, Gurwicz, Novik, *Iterative causal discovery in the possible presence of latent confounders
    /// and selection bias*, 2021.
    pub fn find(independence: &impl Independence, largest: Option<usize>) -> Result<Self, Error> {
        let tokens = independence.nodes();
        if tokens < 3 {
            return Err(Error::TooFewTokens { tokens });
        }
        let mut found = Self {
            graph: MixedGraph::complete(tokens),
            separators: SeparatingSets::default(),
        };
        let largest = largest.unwrap_or(tokens);
        let mut size = 0;
        while size <= largest && found.separate(independence, size)? {
            found.graph.forget_marks();
            orientation::orient(&mut found.graph, &found.separators);
            size += 1;
        }
        tails::orient(&mut found.graph);
        Ok(found)
    }

    /// One round; says whether there was a question to ask.
    fn separate(&mut self, independence: &impl Independence, size: usize) -> Result<bool, Error> {
        let mut asked = false;
        for (i, j) in self.graph.pairs() {
            if !self.graph.adjacent(i, j) {
                continue;
            }
            let mut separating = None;
            for given in candidates(&self.graph, i, j, size) {
                asked = true;
                if independence.independent(i, j, &given)? {
                    separating = Some(given);
                    break;
                }
            }
            if let Some(given) = separating {
                self.graph.remove_edge(i, j);
                self.separators.0.insert((i, j), given);
            }
        }
        Ok(asked)
    }

    /// The set that two nodes were found to be independent given; `None` for nodes that are joined.
    pub fn separating_set(&self, i: usize, j: usize) -> Option<&[usize]> {
        let set = self.separators.0.get(&(i.min(j), i.max(j)));
        set.map(Vec::as_slice)
    }
}

/// The sets of so many nodes that may separate $i$ and $j$, the nearest to $i$ first; those from $j$ are not made
/// before they are asked for.
fn candidates(
    graph: &MixedGraph,
    i: usize,
    j: usize,
    size: usize,
) -> impl Iterator<Item = Vec<usize>> {
    let mut causes = graph.ancestors(&[i, j], MixedGraph::may_be_directed);
    for end in [i, j] {
        causes[end] = false;
    }
    let from_i = ReachedSets::new(graph, i, causes.clone()).of_size(size);
    let seen: BTreeSet<_> = from_i.iter().cloned().collect();
    let from_j = move || ReachedSets::new(graph, j, causes).of_size(size);
    let from_j = std::iter::once_with(from_j).flatten();
    (from_i.into_iter()).chain(from_j.filter(move |set| !seen.contains(set)))
}

/// The sets by the two nodes that they separate, the smaller one first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SeparatingSets(pub(super) BTreeMap<(usize, usize), Vec<usize>>);

impl SeparatingSets {
    /// The set between two nodes that are not joined.
    pub(super) fn between(&self, i: usize, j: usize) -> &[usize] {
        let set = self.0.get(&(i.min(j), i.max(j)));
        set.map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod enumeration;
#[cfg(test)]
mod tests;
