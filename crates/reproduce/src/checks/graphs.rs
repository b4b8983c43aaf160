//! Checks of citation graphs: what their files hold, and Proposition 2 on their edges.

use crate::Error;
use crate::trial::nodes::Prepared;
use bochner_datasets::{DataStore, PlanetoidGraph, PlanetoidSet, Split, SplitSizes, nodes};
use bochner_graph::{Features, Merge, Score, Settings, attend};
use bochner_numerics::check::largest;
use bochner_numerics::{Seed, Tolerance, standard_normal};
use bochner_report::check::Mark;
use ndarray::{Array2, ArrayView2};

/// The sizes counted in a graph's files, features or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) set: PlanetoidSet,
    pub(crate) nodes: usize,
    pub(crate) edges: usize,
    pub(crate) labelled: usize,
    /// Nodes for training, validation and test.
    pub(crate) parts: [usize; 3],
}

impl Counted {
    fn of(graph: &PlanetoidGraph) -> Self {
        let Split {
            train,
            validation,
            test,
        } = &graph.split;
        Self {
            set: graph.set,
            nodes: graph.edges.nodes(),
            edges: graph.edges.undirected().len(),
            labelled: graph.labels.iter().flatten().count(),
            parts: [train, validation, test].map(Vec::len),
        }
    }

    /// The sizes that the files must have: those of the graphs as they are published, and of the split.
    fn expected(set: PlanetoidSet) -> Self {
        // The test nodes of Citeseer have numbers with gaps.
        let unlabelled = if set == PlanetoidSet::Citeseer { 15 } else { 0 };
        let sizes = SplitSizes::STANDARD;
        Self {
            set,
            nodes: set.nodes(),
            edges: set.edges(),
            labelled: set.nodes() - unlabelled,
            parts: [
                sizes.per_class * set.classes(),
                sizes.validation,
                sizes.test,
            ],
        }
    }
}

/// Counts what is in the files of all graphs that are there: without its features, each is small.
pub(crate) fn counted(files: &DataStore) -> Vec<Counted> {
    let graphs = PlanetoidSet::ALL.into_iter();
    let graphs = graphs.filter_map(|set| nodes::load_graph(set, files).ok());
    graphs.map(|graph| Counted::of(&graph)).collect()
}

/// Nodes, edges, labels and splits are as published.
pub(crate) fn counts(counted: &[Counted]) -> Mark {
    let wrong = counted
        .iter()
        .filter(|of| **of != Counted::expected(of.set));
    let wrong: Vec<String> = wrong.map(|of| format!("{of:?}")).collect();
    let names: Vec<&str> = counted.iter().map(|of| of.set.name()).collect();
    match (names.is_empty(), wrong.is_empty()) {
        (true, _) => Mark::NotRun("no graph could be read".into()),
        (_, true) => Mark::Passed(names.join(", ")),
        _ => Mark::Failed(wrong.join("; ")),
    }
}

/// On Cora's edges, graph attention by its formula and its kernel form with the exact Gaussian agree to rounding.
pub(crate) fn identity(files: &DataStore) -> Mark {
    let difference = || {
        let cora = nodes::load(PlanetoidSet::Cora, files)?;
        largest_difference(&Prepared::of(&cora)?)
    };
    match difference() {
        Ok(found) if found <= Tolerance::outputs::<f64>().relative => {
            Mark::Passed(format!("weights within {found:.0e}"))
        }
        Ok(found) => Mark::Failed(format!("weights differ by {found:.1e}")),
        Err(error) => Mark::Failed(error.to_string()),
    }
}

/// The numbers are those of GAT's first layer.
const HEADS: usize = 8;
const WIDTH: usize = 8;

/// The largest difference between weights of classic graph attention and those of the kernel form with
/// exact Gaussian similarities and the magnitudes of p = 2 (Proposition 2), for a random layer on a
/// graph.
fn largest_difference(prepared: &Prepared) -> Result<f64, Error> {
    let mut stream = Seed::new(5).stream("a layer");
    let mut normal = |shape: (usize, usize), std: f64| {
        Array2::from_shape_simple_fn(shape, || std * standard_normal::<f64>(&mut stream))
    };
    let features = prepared.task.features();
    // Scores of either sign that differ by about 1.
    let weight = normal((features.columns(), HEADS * WIDTH), 4.0);
    let a = normal((HEADS, 2 * WIDTH), 0.25);
    let h = Features::Sparse(features).product(weight.mapv(|x| x as f32).view())?;
    let h = h.mapv(f64::from);
    let a = a.view();
    let classic = weights(prepared, h.view(), Score::Classic { a })?;
    let p = Some(2.0);
    let kernel = weights(prepared, h.view(), Score::Gaussian { a, p })?;
    let differences = classic.iter().zip(&kernel).map(|(c, k)| c - k);
    Ok(largest(&differences.collect::<Vec<_>>()))
}

/// The weights of all edges and heads.
fn weights(
    prepared: &Prepared,
    h: ArrayView2<f64>,
    score: Score<'_, f64>,
) -> Result<Array2<f64>, Error> {
    let settings = Settings {
        score,
        slope: 0.2,
        edges: None,
        merge: Merge::Concatenate,
        dropout: None,
        value_dropout: None,
    };
    let graph = prepared.task.graph();
    let attended = attend(graph, h, h, &settings)?;
    Ok(attended.weights().weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_are_not_the_published_ones_are_named() {
        let right: Vec<Counted> = PlanetoidSet::ALL.map(Counted::expected).to_vec();
        assert_eq!(
            counts(&right),
            Mark::Passed("cora, citeseer, pubmed".into())
        );
        let mut wrong = right;
        wrong[1].edges = 4732;
        let Mark::Failed(why) = counts(&wrong) else {
            panic!("an edge too many")
        };
        assert!(why.contains("Citeseer") && why.contains("4732"), "{why}");
        assert!(matches!(counts(&[]), Mark::NotRun(_)));
    }
}
