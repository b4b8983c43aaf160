//! The search where the order of the causes is known.

use super::search::Watched;
use super::testing::{WeightedDag, ancestral, has, is_directed, pairs, parsed};
use bochner_interpret::{
    CausalStructure, Correlations, Error, FisherZ, Independence, Mark, MixedGraph, Separation,
    ValueCovariance, ZeroCorrelation, sem_from_attention,
};
use bochner_numerics::Seed;
use ndarray::{Axis, array};
use std::cell::Cell;

/// Answers from a known graph, and counts the questions.
struct Counted<'a> {
    oracle: Separation<'a>,
    questions: Cell<usize>,
}

impl Independence for Counted<'_> {
    fn nodes(&self) -> usize {
        self.oracle.nodes()
    }

    fn independent(&self, i: usize, j: usize, given: &[usize]) -> Result<bool, Error> {
        self.questions.set(self.questions.get() + 1);
        self.oracle.independent(i, j, given)
    }
}

#[test]
fn the_order_adds_true_marks_and_saves_questions() {
    let (mut questions, mut marks, mut directed, mut latent_causes) = ([0; 2], [0; 2], 0, 0);
    for number in 0..100 {
        let nodes = 8 + number % 4;
        let dag = WeightedDag::random(nodes, 2.5, Seed::new(6).nth(number as u64));
        // The second node of every four is latent, so that most latent ones have effects.
        let mut observed = dag.order();
        let mut places = 0..;
        observed.retain(|_| places.next().is_some_and(|place: usize| place % 4 != 1));
        let truth = ancestral(&dag.graph, &observed, &[]);
        let find = [CausalStructure::find, CausalStructure::find_in_order];
        let found = find.map(|find| {
            let counted = Counted {
                oracle: Separation::new(&dag.graph, &observed, &[]).unwrap(),
                questions: Cell::new(0),
            };
            let found = find(&counted, None).unwrap();
            (found.graph, counted.questions.get())
        });
        let [(without, _), (got, _)] = &found;
        for (a, b) in pairs(truth.nodes()).flat_map(|(a, b)| [(a, b), (b, a)]) {
            assert_eq!(
                got.adjacent(a, b),
                truth.adjacent(a, b),
                "{got} for {truth}"
            );
            let known = |graph: &MixedGraph| {
                let mark = graph.mark_at(a, b);
                mark.filter(|&mark| mark != Mark::Circle)
            };
            let both = [known(without), known(got)];
            if both[1].is_some() {
                assert_eq!(both[1], truth.mark_at(a, b), "{got} for {truth}");
            }
            assert!(
                both[0].is_none() || both[0] == both[1],
                "{got} after {without}"
            );
            for (marks, known) in marks.iter_mut().zip(both) {
                *marks += usize::from(known.is_some());
            }
            directed += usize::from(is_directed(got, a, b));
            latent_causes += usize::from(has(got, Mark::Arrow, a, b) && a < b);
        }
        for (questions, (_, asked)) in questions.iter_mut().zip(&found) {
            *questions += asked;
        }
    }
    assert!(questions[1] < questions[0] && marks[1] > marks[0]);
    assert!(directed > 10 && latent_causes > 2);
}

#[test]
fn exact_correlations_in_order_find_the_structural_equations() {
    let mut cancelling = 0;
    for number in 0..60 {
        let nodes = 6 + number % 7;
        let dag = WeightedDag::random(nodes, 2.0, Seed::new(28).nth(number as u64));
        let order = dag.order();
        let correlations = dag.correlations().between(&order).unwrap();
        let oracle = Separation::new(&dag.graph, &order, &[]).unwrap();
        let watched = Watched::new(oracle, &correlations);
        let want = CausalStructure::find_in_order(&watched, None).unwrap();

        // In this order total effects look like attention with a causal mask.
        let a = dag.attention();
        let a = a.select(Axis(0), &order).select(Axis(1), &order);
        let g = sem_from_attention(a.view()).unwrap().g;
        for (cause, effect) in pairs(want.graph.nodes()) {
            let is_effect = g[[effect, cause]].abs() > 0.25;
            assert_eq!(want.graph.adjacent(cause, effect), is_effect, "{number}");
        }

        if watched.smallest.get() < 1e-6 {
            cancelling += 1;
        } else {
            let exact = ZeroCorrelation::new(&correlations, 1e-9).unwrap();
            let found = CausalStructure::find_in_order(&exact, None).unwrap();
            assert_eq!(found, want, "graph {number}");
        }
    }
    assert!(cancelling < 6);
}

#[test]
fn too_few_nodes_or_samples_are_refused_in_order_too() {
    let chain = parsed(3, "0 --> 1, 1 --> 2");
    let two = Separation::new(&chain, &[0, 1], &[]).unwrap();
    let refused = CausalStructure::find_in_order(&two, None);
    assert!(matches!(refused, Err(Error::TooFewTokens { tokens: 2 })));

    let a = array![[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.25, 0.25, 0.5]];
    let of = Correlations::of_attention(a.view(), ValueCovariance::Identity).unwrap();
    let none = FisherZ::new(&of, 0, 0.01);
    assert!(matches!(
        none,
        Err(Error::TooFewSamples {
            samples: 0,
            least: 4
        })
    ));
    // At this level the ends of the chain count as dependent, and what would separate them takes a fifth sample.
    let four = FisherZ::new(&of, 4, 0.9).unwrap();
    let refused = CausalStructure::find_in_order(&four, None);
    assert!(matches!(
        refused,
        Err(Error::TooFewSamples {
            samples: 4,
            least: 5
        })
    ));
    let whole = CausalStructure::find_in_order(&four, Some(0)).unwrap();
    assert_eq!(whole.graph.to_string(), "0 o-> 1, 0 o-> 2, 1 o-> 2");
}
