//! Causal structure read from attention: recovery on random graphs, exactly and from samples, and the test behind it.

use crate::Error;
use crate::study::case::{Case, each};
use crate::study::{Finding, Measure, Study};
use bochner_interpret::{
    CausalStructure, Correlations, FisherTest, FisherZ, Independence, MixedGraph, Separation,
    ValueCovariance, ZeroCorrelation,
};
use bochner_report::Scale;
use ndarray::{Array1, Array2};
use rand::seq::SliceRandom;
use std::cell::Cell;

/// The suite.
pub static CAUSAL: Study = Study {
    name: "causal",
    title: "Causal structure read from attention",
    part: "statement",
    opening,
    parts: &[
        |scale| exact(1, graphs(scale), 0),
        |scale| exact(2, graphs(scale), 2),
        |scale| sampled(graphs(scale)),
        type_one_error,
    ],
};

/// A partial correlation below this is zero where covariances are exact.
const ZERO: f64 = 1e-9;

/// Paths nearly cancel where two nodes that nothing separates have a partial correlation below this.
const NEARLY_ZERO: f64 = 1e-6;

/// Neighbours of a node, on average.
const DEGREE: f64 = 2.0;

/// The level of the tests that a search from samples asks.
const LEVEL: f64 = 0.01;

/// Numbers of samples.
const SAMPLES: [usize; 7] = [64, 128, 256, 512, 1024, 2048, 4096];

/// Trials behind each type I error.
const TRIALS: usize = 20_000;

const EXACT: &str = "From A A^T alone, with partial correlations below 1e-9 taken for zero, the search finds the \
    oracle's skeleton and marks in every graph without near-cancelling paths: paths nearly cancel where a pair that \
    nothing separates has a partial correlation below 1e-6. Controls, which must fail: joining all pairs that are \
    correlated, and the covariance of the nodes under the names of their neighbours in the list.";

const HIDDEN: &str = "With two nodes of each graph hidden, so that there are latent causes, the search on what is left \
    finds the oracle's partial ancestral graph.";

fn opening(scale: Scale) -> String {
    format!(
        "{} random directed graphs of 6 to 12 nodes with {DEGREE} neighbours a node on average, their edges' weights \
         uniform in ±[.5, 2], names shuffled. The total effects (I - G)^-1 stand for the attention weights A, and A \
         A^T is the covariance. The oracle is the search with the answers of d-separation in the true graph.",
        graphs(scale)
    )
}

fn graphs(scale: Scale) -> usize {
    match scale {
        Scale::Smoke => 20,
        Scale::Desk => 200,
        Scale::Paper => 1000,
    }
}

/// A linear model with its graph.
struct Model {
    graph: MixedGraph,
    /// Row i holds the total effects on node i.
    effects: Array2<f64>,
}

impl Model {
    fn random(case: &mut Case) -> Result<Self, Error> {
        let nodes = case.count(6, 12);
        let mut order: Vec<usize> = (0..nodes).collect();
        order.shuffle(case.stream());
        let mut effects = Array2::zeros((nodes, nodes));
        let mut edges = Vec::new();
        for (place, &effect) in order.iter().enumerate() {
            let mut on_it = Array1::zeros(nodes);
            on_it[effect] = 1.0;
            for &cause in &order[..place] {
                if case.happens(DEGREE / (nodes - 1) as f64) {
                    let weight = case.sign() * case.real(0.5, 2.0);
                    on_it.scaled_add(weight, &effects.row(cause));
                    edges.push((cause, effect));
                }
            }
            effects.row_mut(effect).assign(&on_it);
        }
        let graph = MixedGraph::directed(nodes, &edges)?;
        Ok(Self { graph, effects })
    }

    fn correlations(&self, values: ValueCovariance<f64>) -> Result<Correlations, Error> {
        Ok(Correlations::of_attention(self.effects.view(), values)?)
    }
}

/// Exact answers, each compared with the oracle's.
struct Watched<'a> {
    correlations: &'a Correlations,
    exact: ZeroCorrelation<'a>,
    oracle: &'a Separation<'a>,
    seen: Cell<Seen>,
}

/// Questions asked in a search, answers other than the oracle's, and dependences that are nearly cancelled.
#[derive(Clone, Copy, Default)]
struct Seen {
    questions: usize,
    wrong: usize,
    near: usize,
}

impl Independence for Watched<'_> {
    fn nodes(&self) -> usize {
        self.exact.nodes()
    }

    fn independent(
        &self,
        i: usize,
        j: usize,
        given: &[usize],
    ) -> Result<bool, bochner_interpret::Error> {
        let answer = self.exact.independent(i, j, given)?;
        let truth = self.oracle.independent(i, j, given)?;
        let near = !truth && self.correlations.partial(i, j, given)?.abs() < NEARLY_ZERO;
        let seen = self.seen.get();
        self.seen.set(Seen {
            questions: seen.questions + 1,
            wrong: seen.wrong + usize::from(answer != truth),
            near: seen.near + usize::from(near),
        });
        Ok(answer)
    }
}

/// The agreement of two graphs: F1 of the joined pairs, the same pairs, and the same marks as well.
#[derive(Clone, Copy, Default)]
struct Agreement {
    f1: f64,
    skeleton: bool,
    whole: bool,
}

fn agreement(found: &MixedGraph, truth: &MixedGraph) -> Agreement {
    let count = |joined: &dyn Fn(usize, usize) -> bool| {
        let pairs = (0..truth.nodes()).flat_map(|i| (0..i).map(move |j| (i, j)));
        pairs.filter(|&(i, j)| joined(i, j)).count() as f64
    };
    let both = count(&|i, j| found.adjacent(i, j) && truth.adjacent(i, j));
    let all = count(&|i, j| found.adjacent(i, j)) + count(&|i, j| truth.adjacent(i, j));
    Agreement {
        f1: if all == 0.0 { 1.0 } else { 2.0 * both / all },
        skeleton: 2.0 * both == all,
        whole: found == truth,
    }
}

/// The results of one graph.
struct Recovered {
    seen: Seen,
    search: Agreement,
    /// Correlated pairs joined, and the search on the covariance of nodes under others' names.
    plain: Agreement,
    renamed: Agreement,
}

fn exact(number: usize, graphs: usize, hidden: usize) -> Result<Finding, Error> {
    let cases = each(number, graphs, |case| recover(case, hidden))?;
    let clear: Vec<&Recovered> = cases.iter().filter(|case| case.seen.near == 0).collect();
    let share = |what: &str, right: fn(&Recovered) -> bool| {
        Measure::share(what, clear.iter().map(|case| right(case)))
    };
    let wrong = clear.iter().map(|case| case.seen.wrong).sum::<usize>();
    let questions = cases.iter().map(|case| case.seen.questions).sum::<usize>();
    let left_out = cases.len() - clear.len();
    let measures = vec![
        share("share with the oracle's skeleton", |c| c.search.skeleton).at_least(1.0),
        share("share with all its marks too", |c| c.search.whole).at_least(1.0),
        Measure::shown("answers other than the oracle's", wrong as f64).at_most(0.0),
        Measure::shown("questions asked", questions as f64),
        Measure::shown("graphs left out: paths nearly cancel", left_out as f64),
        share("control, correlated pairs joined: share", |c| {
            c.plain.skeleton
        })
        .at_most(0.1),
        share("control, others' names: share", |c| c.renamed.skeleton).at_most(0.1),
    ];
    let (title, statement) = match hidden {
        0 => ("exact covariances give the oracle's graph", EXACT),
        _ => ("two hidden nodes change nothing of that", HIDDEN),
    };
    Ok(Finding {
        number,
        title,
        statement,
        cases: cases.len(),
        measures,
        ..Finding::default()
    })
}

fn recover(mut case: Case, hidden: usize) -> Result<Recovered, Error> {
    let model = Model::random(&mut case)?;
    let mut nodes: Vec<usize> = (0..model.graph.nodes()).collect();
    nodes.shuffle(case.stream());
    let observed = &nodes[hidden..];
    let correlations = model
        .correlations(ValueCovariance::Identity)?
        .between(observed)?;
    let oracle = Separation::new(&model.graph, observed, &[])?;
    let truth = CausalStructure::find(&oracle, None)?.graph;
    let watched = Watched {
        correlations: &correlations,
        exact: ZeroCorrelation::new(&correlations, ZERO)?,
        oracle: &oracle,
        seen: Cell::default(),
    };
    let found = CausalStructure::find(&watched, None)?.graph;
    let correlated = CausalStructure::find(&watched, Some(0))?.graph;
    let mut others = observed.to_vec();
    others.rotate_left(1);
    let others = model
        .correlations(ValueCovariance::Identity)?
        .between(&others)?;
    let renamed = CausalStructure::find(&ZeroCorrelation::new(&others, ZERO)?, None)?.graph;
    Ok(Recovered {
        seen: watched.seen.get(),
        search: agreement(&found, &truth),
        plain: agreement(&correlated, &truth),
        renamed: agreement(&renamed, &truth),
    })
}

/// The results of one graph with each number of samples.
#[derive(Default)]
struct FromSamples {
    search: [Agreement; SAMPLES.len()],
    /// Pairs that are joined where each node's samples are in an order of their own, and all pairs.
    shuffled: [usize; 2],
}

fn sampled(graphs: usize) -> Result<Finding, Error> {
    let cases = each(3, graphs, from_samples)?;
    let mut measures = Vec::new();
    let mut curve = Vec::new();
    for (place, samples) in SAMPLES.into_iter().enumerate() {
        let f1: Vec<f64> = cases.iter().map(|case| case.search[place].f1).collect();
        let what = format!("F1 of the skeleton, {samples} samples");
        let f1 = Measure::mean(what, &f1)?;
        curve.push(f1.value);
        let what = format!("share of graphs with all marks right, {samples} samples");
        let whole = cases.iter().map(|case| case.search[place].whole);
        measures.extend([f1, Measure::share(what, whole)]);
    }
    let (first, last) = (curve[0], curve[SAMPLES.len() - 1]);
    let [joined, pairs] = [0, 1].map(|i| cases.iter().map(|case| case.shuffled[i]).sum::<usize>());
    measures.extend([
        Measure::shown("F1 at 4,096 samples", last).at_least(0.9),
        Measure::shown("F1 at 4,096 samples less F1 at 64", last - first).at_least(0.05),
        Measure::shown(
            "control, shuffled samples: pairs joined",
            joined as f64 / pairs as f64,
        )
        .at_most(0.015),
    ]);
    Ok(Finding {
        number: 3,
        title: "samples find the graph by and by",
        statement: "With Fisher's test at level 0.01 the F1 of the skeleton against the oracle's grows from 64 to \
                    4,096 samples, to at least 0.9. Control: with the samples of every node in an order of its own no \
                    more pairs are joined than the level allows.",
        cases: cases.len(),
        measures,
        ..Finding::default()
    })
}

fn from_samples(mut case: Case) -> Result<FromSamples, Error> {
    let model = Model::random(&mut case)?;
    let nodes = model.graph.nodes();
    let observed: Vec<usize> = (0..nodes).collect();
    let truth = CausalStructure::find(&Separation::new(&model.graph, &observed, &[])?, None)?.graph;
    let mut seen = FromSamples::default();
    for (place, samples) in SAMPLES.into_iter().enumerate() {
        let values = case.normal(nodes, samples, 1.0);
        let correlations = model.correlations(ValueCovariance::OfValues(values.view()))?;
        let found = CausalStructure::find(&FisherZ::of_samples(&correlations, LEVEL)?, None)?;
        seen.search[place] = agreement(&found.graph, &truth);

        let mut outputs = model.effects.dot(&values);
        for mut row in outputs.rows_mut() {
            let mut shuffled = row.to_vec();
            shuffled.shuffle(case.stream());
            row.assign(&Array1::from(shuffled));
        }
        let of = Correlations::of_samples(outputs.view())?;
        let found = CausalStructure::find(&FisherZ::of_samples(&of, LEVEL)?, None)?.graph;
        seen.shuffled[0] += (0..nodes)
            .map(|i| found.neighbours(i).count())
            .sum::<usize>()
            / 2;
        seen.shuffled[1] += nodes * (nodes - 1) / 2;
    }
    Ok(seen)
}

fn type_one_error(scale: Scale) -> Result<Finding, Error> {
    let settings: &[(usize, usize)] = match scale {
        Scale::Smoke => &[(64, 1)],
        _ => &[
            (32, 1),
            (64, 0),
            (64, 1),
            (64, 2),
            (64, 4),
            (256, 1),
            (1024, 1),
        ],
    };
    let mut measures = Vec::new();
    for (place, &(samples, given)) in settings.iter().enumerate() {
        let (rejected, power) = rejections(place, samples, given)?;
        let error = (rejected * (1.0 - rejected) / TRIALS as f64).sqrt();
        let what = format!("type I error at 0.05, {samples} samples, {given} given");
        measures.push(
            Measure::shown(what, rejected)
                .with_error(error)
                .within(0.045, 0.055),
        );
        if given > 0 {
            let what = format!("control, no cause of {given} given: rejected, {samples} samples");
            measures.push(Measure::shown(what, power).at_least(0.9));
        }
    }
    Ok(Finding {
        number: 4,
        title: "the test errs as often as it says",
        statement: "Two nodes that common causes drive, and nothing else joins, are taken for dependent given these \
                    causes in 0.05 ± 0.005 of trials at level 0.05. Control: with none of the causes given the test \
                    sees the dependence in at least nine of ten trials.",
        cases: TRIALS,
        measures,
        ..Finding::default()
    })
}

/// The share of trials in which two nodes without an edge are found to be dependent, given their common causes and
/// given nothing.
fn rejections(place: usize, samples: usize, given: usize) -> Result<(f64, f64), Error> {
    // Nodes 0 and 1 are driven by the `given` next ones; one more is there so that no model has two nodes alone.
    let nodes = given + 3;
    let mut effects = Array2::eye(nodes);
    let causes: Vec<usize> = (2..2 + given).collect();
    for &cause in &causes {
        effects[[0, cause]] = 1.2;
        effects[[1, cause]] = 0.9;
    }
    let each = each(4 + place, TRIALS, |mut case| {
        let values = case.normal(nodes, samples, 1.0);
        let of =
            Correlations::of_attention(effects.view(), ValueCovariance::OfValues(values.view()))?;
        let rejected = |given: &[usize]| -> Result<bool, Error> {
            let r = of.partial(0, 1, given)?;
            Ok(FisherTest::new(r, samples, given.len())?.p_value <= 0.05)
        };
        Ok((rejected(&causes)?, rejected(&[])?))
    })?;
    let share = |of: fn(&(bool, bool)) -> bool| {
        each.iter().filter(|trial| of(trial)).count() as f64 / TRIALS as f64
    };
    Ok((share(|trial| trial.0), share(|trial| trial.1)))
}
