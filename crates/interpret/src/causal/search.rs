//! The search for the graphs that have the independences that are seen.

use super::possible_d_sep::ReachedSets;
use super::{Independence, Mark, MixedGraph, orientation, tails};
use crate::Error;
use std::collections::{BTreeMap, BTreeSet};

/// The causal structure among some nodes, some of whose causes may not be among them.
///
/// ```
/// use bochner_interpret::{CausalStructure, Correlations, ValueCovariance, ZeroCorrelation};
/// use bochner_interpret::ndarray::array;
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
    /// The search begins with all nodes joined by ${\circ}{-}{\circ}$. In round $r = 0, 1, \dots$ it removes an edge
    /// between $i$ and $j$ if they are independent given $r$ nodes, each a possible cause of $i$ or $j$, and each
    /// reached from $i$ through others of them along a path that may be opened (or all from $j$). After each round the
    /// marks are erased and set again by rules R0 to R4. The last round is the one in which no question was left. Rules
    /// R5 to R10 then find the tails.
    ///
    /// `largest` ends the search at sets of that size: two nodes that only a larger set separates then stay joined,
    /// and marks that follow from such an edge are uncertain. With [`FisherZ`](super::FisherZ), which refuses larger sets,
    /// `largest` is at most the number of samples less 4.
    ///
    /// # Errors
    /// [`Error::TooFewTokens`] below three nodes, and the errors of the questions.
    ///
    /// # Numerics
    /// If all answers are right for some graph with latent and selecting nodes, the result is its partial ancestral
    /// graph, with all arrows and tails that can be known. If answers are wrong, the mark that was set first stays, and
    /// the result depends on the order of the nodes. The number of questions is exponential in the number of nodes
    /// around those that stay joined.
    ///
    /// # Reference
    /// Rohekar, Nisimov, Gurwicz, Novik, *Iterative causal discovery in the possible presence of latent confounders
    /// and selection bias*, 2021.
    pub fn find(independence: &impl Independence, largest: Option<usize>) -> Result<Self, Error> {
        Self::search(independence, largest, Known::Nothing)
    }

    /// Finds the structure of nodes none of which is a cause of one with a smaller number, as tokens are where a causal
    /// mask keeps attention from looking ahead.
    ///
    /// Every edge has an arrow at its later node before rule R0, and the sets that may separate two nodes are looked for
    /// around the later one alone. Everything else is as in [`find`](Self::find); as a rule this search asks fewer
    /// questions and finds more marks. [`Correlations::between`](super::Correlations::between) puts nodes that are
    /// numbered otherwise into their order; [`sem_from_attention`](super::sem_from_attention) refuses attention that
    /// looks ahead, and needs no search where all causes are among the tokens.
    ///
    /// # Errors
    /// The errors of [`find`](Self::find).
    ///
    /// # Numerics
    /// With answers that are right for some graph that has this order, with latent nodes but none that select, the
    /// result is what all such graphs with these independences have in common. Where answers err, or the nodes have
    /// another order, it depends on the order of the nodes.
    ///
    /// # Reference
    /// Rohekar, Gurwicz, Yu, Aflalo, Lal, *A causal world model underlying next token prediction*, 2025; that all marks
    /// are found is shown in Andrews, Spirtes, Cooper, *On the completeness of causal discovery in the presence of latent
    /// confounding with tiered background knowledge*, 2020.
    ///
    /// ```
    /// use bochner_interpret::{CausalStructure, Correlations, ValueCovariance, ZeroCorrelation};
    /// use bochner_interpret::ndarray::array;
    ///
    /// // Token 1 looks at token 0, and token 2 at what token 1 has become.
    /// let a = array![[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.25, 0.25, 0.5]];
    /// let correlations = Correlations::of_attention(a.view(), ValueCovariance::Identity)?;
    /// let independence = ZeroCorrelation::new(&correlations, 1e-9)?;
    /// let unordered = CausalStructure::find(&independence, None)?;
    /// assert_eq!(unordered.graph.to_string(), "0 o-o 1, 1 o-o 2");
    /// let ordered = CausalStructure::find_in_order(&independence, None)?;
    /// assert_eq!(ordered.graph.to_string(), "0 o-> 1, 1 --> 2");
    /// # Ok::<(), bochner_interpret::Error>(())
    /// ```
    pub fn find_in_order(
        independence: &impl Independence,
        largest: Option<usize>,
    ) -> Result<Self, Error> {
        Self::search(independence, largest, Known::Order)
    }

    fn search(
        independence: &impl Independence,
        largest: Option<usize>,
        known: Known,
    ) -> Result<Self, Error> {
        let tokens = independence.nodes();
        if tokens < 3 {
            return Err(Error::TooFewTokens { tokens });
        }
        let mut found = Self {
            graph: MixedGraph::complete(tokens),
            separators: SeparatingSets::default(),
        };
        known.mark(&mut found.graph);
        let largest = largest.unwrap_or(tokens);
        let mut size = 0;
        while size <= largest && found.separate(independence, size, known)? {
            known.mark(&mut found.graph);
            orientation::orient(&mut found.graph, &found.separators);
            size += 1;
        }
        tails::orient(&mut found.graph);
        Ok(found)
    }

    /// One round; says whether there was a question to ask.
    fn separate(
        &mut self,
        independence: &impl Independence,
        size: usize,
        known: Known,
    ) -> Result<bool, Error> {
        let mut asked = false;
        for (i, j) in self.graph.pairs() {
            if !self.graph.adjacent(i, j) {
                continue;
            }
            let mut separating = None;
            for given in candidates(&self.graph, [i, j], size, known) {
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

/// Knowledge of the causes before the search.
#[derive(Clone, Copy)]
enum Known {
    Nothing,
    /// No node is a cause of one with a smaller number.
    Order,
}

impl Known {
    /// Erases all marks but those that this says.
    fn mark(self, graph: &mut MixedGraph) {
        graph.forget_marks();
        if let Self::Order = self {
            for (earlier, later) in graph.pairs() {
                graph.orient(later, earlier, Mark::Arrow);
            }
        }
    }

    /// The ends from which separating sets are looked for. A node is separated from what it is no cause of by nodes that
    /// are reached from it, so that the later end will do.
    fn ends(self, [i, j]: [usize; 2]) -> impl Iterator<Item = usize> {
        let first = match self {
            Self::Nothing => Some(i),
            Self::Order => None,
        };
        first.into_iter().chain([j])
    }
}

/// The sets of so many nodes that may separate two nodes, the nearest to an end first; those from the second end are not
/// made before they are asked for.
fn candidates(
    graph: &MixedGraph,
    pair: [usize; 2],
    size: usize,
    known: Known,
) -> impl Iterator<Item = Vec<usize>> {
    let mut causes = graph.ancestors(&pair, MixedGraph::may_be_directed);
    for end in pair {
        causes[end] = false;
    }
    let reached = move |end| ReachedSets::new(graph, end, causes.clone()).of_size(size);
    let mut seen = BTreeSet::new();
    let sets = known.ends(pair).flat_map(reached);
    sets.filter(move |set| seen.insert(set.clone()))
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
