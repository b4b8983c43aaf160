//! The search for a causal structure.

use super::testing::{WeightedDag, ancestral, has, pairs, parsed};
use bochner_interpret::{
    CausalStructure, Correlations, Error, FisherZ, Independence, Mark, MixedGraph, Separation,
    ValueCovariance, ZeroCorrelation,
};
use bochner_numerics::{Seed, fill_standard_normal};
use ndarray::Array2;
use std::cell::Cell;

/// The structure of the first nodes of a graph.
fn found(text: &str, nodes: usize, observed: usize) -> String {
    let graph = parsed(nodes, text);
    let observed: Vec<usize> = (0..observed).collect();
    let oracle = Separation::new(&graph, &observed, &[]).unwrap();
    let found = CausalStructure::find(&oracle, None).unwrap();
    found.graph.to_string()
}

#[test]
fn tails_beside_an_undirected_cycle_are_known() {
    let cycle = "0 --- 1, 0 --- 3, 1 --- 2, 2 --- 3";
    let tail = found(&format!("{cycle}, 3 --- 4, 4 --- 5"), 6, 6);
    assert_eq!(tail, format!("{cycle}, 3 --o 4, 4 --o 5"));
}

#[test]
fn a_discriminating_path_may_pass_a_node_that_another_way_reached_first() {
    // Nodes 6, 7 and 8 are latent, behind 1 and 2, 2 and 3, 3 and 4. From 4 the search reaches node 1 over 3 first, where
    // it is no collider; over 2 it is one.
    let both = "0 --> 1, 6 --> 1, 6 --> 2, 7 --> 2, 7 --> 3, 8 --> 3, 8 --> 4, 1 --> 3, 1 --> 5, 2 --> 5, 3 --> 5";
    let cause = found(&format!("{both}, 4 --> 5"), 9, 6);
    assert!(cause.contains("4 --> 5"), "{cause}");
    let latent = found(&format!("{both}, 9 --> 4, 9 --> 5"), 10, 6);
    assert!(
        latent.contains("3 <-> 4") && latent.contains("4 <-> 5"),
        "{latent}"
    );
}

#[test]
fn marks_hold_in_the_graph_with_latent_and_selecting_nodes() {
    let (mut marks, mut latent_causes) = (0, 0);
    for number in 0..60 {
        let nodes = 8 + number % 4;
        let dag = WeightedDag::random(nodes, 2.5, Seed::new(5).nth(number as u64));
        let observed: Vec<usize> = (0..nodes - 3).collect();
        let selected = match number % 2 {
            0 => vec![],
            _ => vec![nodes - 1],
        };
        let truth = ancestral(&dag.graph, &observed, &selected);
        let oracle = Separation::new(&dag.graph, &observed, &selected).unwrap();
        let got = CausalStructure::find(&oracle, None).unwrap().graph;
        for (a, b) in pairs(truth.nodes()).flat_map(|(a, b)| [(a, b), (b, a)]) {
            assert_eq!(
                got.adjacent(a, b),
                truth.adjacent(a, b),
                "{got} for {truth}"
            );
            let known = got.mark_at(a, b).filter(|&mark| mark != Mark::Circle);
            if known.is_some() {
                assert_eq!(known, truth.mark_at(a, b), "{got} for {truth}");
                marks += 1;
                latent_causes +=
                    usize::from(has(&got, Mark::Arrow, a, b) && has(&got, Mark::Arrow, b, a));
            }
        }
    }
    assert!(marks > 150 && latent_causes > 5);
}

/// Answers from a known graph, and notes what exact correlations would have said.
pub(super) struct Watched<'a> {
    oracle: Separation<'a>,
    correlations: &'a Correlations,
    /// The smallest partial correlation between nodes that are not separated.
    pub(super) smallest: Cell<f64>,
    /// The largest one between nodes that are.
    largest: Cell<f64>,
}

impl<'a> Watched<'a> {
    pub(super) fn new(oracle: Separation<'a>, correlations: &'a Correlations) -> Self {
        Self {
            oracle,
            correlations,
            smallest: Cell::new(1.0),
            largest: Cell::new(0.0),
        }
    }
}

impl Independence for Watched<'_> {
    fn nodes(&self) -> usize {
        self.oracle.nodes()
    }

    fn independent(&self, i: usize, j: usize, given: &[usize]) -> Result<bool, Error> {
        let separated = self.oracle.independent(i, j, given)?;
        let r = self.correlations.partial(i, j, given)?.abs();
        match separated {
            true => self.largest.set(self.largest.get().max(r)),
            false => self.smallest.set(self.smallest.get().min(r)),
        }
        Ok(separated)
    }
}

/// The mistake to condition on nothing.
struct Marginal<'a>(ZeroCorrelation<'a>);

impl Independence for Marginal<'_> {
    fn nodes(&self) -> usize {
        self.0.nodes()
    }

    fn independent(&self, i: usize, j: usize, _: &[usize]) -> Result<bool, Error> {
        self.0.independent(i, j, &[])
    }
}

#[test]
fn exact_correlations_find_what_the_oracle_finds() {
    let (mut cancelling, mut zero, mut missed) = (0, 0.0_f64, 0);
    for number in 0..60 {
        let nodes = 6 + number % 7;
        let dag = WeightedDag::random(nodes, 2.0, Seed::new(28).nth(number as u64));
        let all: Vec<usize> = (0..nodes).collect();
        let correlations = dag.correlations();
        let oracle = Separation::new(&dag.graph, &all, &[]).unwrap();
        let watched = Watched::new(oracle, &correlations);
        let want = CausalStructure::find(&watched, None).unwrap();
        for (a, b) in pairs(dag.graph.nodes()) {
            assert_eq!(want.graph.adjacent(a, b), dag.graph.adjacent(a, b));
        }
        zero = zero.max(watched.largest.get());
        let exact = ZeroCorrelation::new(&correlations, 1e-9).unwrap();
        if watched.smallest.get() < 1e-6 {
            cancelling += 1;
        } else {
            assert_eq!(
                CausalStructure::find(&exact, None).unwrap(),
                want,
                "graph {number}"
            );
        }
        let marginal = CausalStructure::find(&Marginal(exact), Some(1)).unwrap();
        missed += usize::from(marginal.graph != want.graph);
    }
    assert!(zero < 1e-9 && cancelling < 6);
    assert!(
        missed > 30,
        "correlations that are not partial miss {missed} graphs only"
    );
}

/// The F1 score of a skeleton: the harmonic mean of the share of its edges that are right and the share of the right ones
/// that it has.
fn f1(found: &MixedGraph, truth: &MixedGraph) -> f64 {
    let count =
        |f: &dyn Fn(usize, usize) -> bool| pairs(truth.nodes()).filter(|&(a, b)| f(a, b)).count();
    let both = count(&|a, b| found.adjacent(a, b) && truth.adjacent(a, b));
    let either = count(&|a, b| found.adjacent(a, b)) + count(&|a, b| truth.adjacent(a, b));
    2.0 * both as f64 / either.max(1) as f64
}

#[test]
fn more_samples_find_more_of_the_skeleton() {
    let mut curve = Vec::new();
    for samples in [64, 512, 4096_usize] {
        // Errors of the first kind vanish only if the level does.
        let level = 0.08 / (samples as f64).sqrt();
        let mut total = 0.0;
        for number in 0..40 {
            let seed = Seed::new(7).nth(number);
            let dag = WeightedDag::random(8, 2.0, seed);
            let mut values = Array2::zeros((8, samples));
            let mut stream = seed.stream("values");
            fill_standard_normal(&mut stream, values.as_slice_mut().unwrap());
            let a = dag.attention();
            let drawn = ValueCovariance::OfValues(values.view());
            let correlations = Correlations::of_attention(a.view(), drawn).unwrap();
            let fisher = FisherZ::new(&correlations, samples, level).unwrap();
            let found = CausalStructure::find(&fisher, None).unwrap();
            total += f1(&found.graph, &dag.graph) / 40.0;
        }
        curve.push(total);
    }
    assert!(curve.is_sorted() && curve[2] > 0.9, "{curve:?}");
}

#[test]
fn sets_larger_than_wanted_are_not_asked_for() {
    // Nodes 1, 2 and 3 are all between 0 and 4.
    let text = "0 --> 1, 0 --> 2, 0 --> 3, 1 --> 4, 2 --> 4, 3 --> 4";
    let graph = parsed(5, text);
    let all = [0, 1, 2, 3, 4];
    let oracle = Separation::new(&graph, &all, &[]).unwrap();
    let of = |largest| CausalStructure::find(&oracle, largest).unwrap();
    assert!(of(Some(2)).graph.adjacent(0, 4));
    assert_eq!(of(Some(2)).separating_set(4, 0), None);
    assert_eq!(of(Some(3)), of(None));
    assert_eq!(of(None).separating_set(4, 0), Some(&[1, 2, 3][..]));
    let two = Separation::new(&graph, &all[..2], &[]).unwrap();
    let refused = CausalStructure::find(&two, None);
    assert!(matches!(refused, Err(Error::TooFewTokens { tokens: 2 })));
}
