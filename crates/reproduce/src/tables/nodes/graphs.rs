//! The graphs that the units of the table run on.

use super::{TABLE, title, trial};
use crate::tables::Skipped;
use crate::{Error, Suite, Trial, Unit};
use bochner_datasets::{
    DataStore, PlanetoidData, PlanetoidGraph, PlanetoidSet, Split, SplitSizes, nodes,
};
use bochner_graph::{Graph, SparseFeatures};
use bochner_models::node_classifier::Task;
use std::collections::BTreeMap;

/// The data of the suite.
#[derive(Debug, Default)]
pub struct Nodes {
    graphs: BTreeMap<PlanetoidSet, Prepared>,
    counted: Vec<Counted>,
}

/// A graph as it is learned from.
///
/// Edges lead both ways, each once, and from every node to itself; what the file says of self loops is
/// not counted twice. The features of a node are divided by their sum.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) task: Task,
    pub(super) split: Split,
}

/// What was counted in a graph's files, features or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) set: PlanetoidSet,
    pub(super) nodes: usize,
    pub(super) edges: usize,
    pub(super) labelled: usize,
    /// Nodes for training, validation and test.
    pub(super) parts: [usize; 3],
}

impl Nodes {
    /// Loads some graphs; those that cannot be had, or whose files are wrong, come back beside it, so
    /// that one bad file does not keep the others from running.
    ///
    /// # Errors
    /// What the classifier says of data that it cannot learn from.
    pub fn load(sets: &[PlanetoidSet], store: &DataStore) -> Result<(Self, Vec<Skipped>), Error> {
        let (mut suite, mut skipped) = (Self::default(), Vec::new());
        for &set in sets {
            match nodes::load(set, store) {
                Ok(data) => {
                    suite.graphs.insert(set, Prepared::of(&data)?);
                }
                Err(error) => skipped.push(Skipped::new(title(set), &error)),
            }
        }
        Ok((suite, skipped))
    }

    /// Counts what is in the files of all graphs that are there: without its features, each is small.
    pub fn count(&mut self, store: &DataStore) {
        let graphs = PlanetoidSet::ALL.into_iter();
        let graphs = graphs.filter_map(|set| nodes::load_graph(set, store).ok());
        self.counted = graphs.map(|graph| Counted::of(&graph)).collect();
    }

    pub(super) fn counted(&self) -> &[Counted] {
        &self.counted
    }

    /// Whether a graph is there.
    pub fn has(&self, set: PlanetoidSet) -> bool {
        self.graphs.contains_key(&set)
    }

    pub(super) fn graph(&self, set: PlanetoidSet) -> Option<&Prepared> {
        self.graphs.get(&set)
    }
}

impl Suite for Nodes {
    fn table(&self) -> &str {
        TABLE
    }

    fn start(&self, unit: &Unit) -> Result<Box<dyn Trial + '_>, Error> {
        let mut graphs = self.graphs.iter();
        let found = graphs.find(|(set, _)| title(**set) == unit.set);
        let (_, prepared) = found.ok_or_else(|| Error::Trial {
            unit: unit.id(),
            message: "its graph is not loaded".to_owned(),
        })?;
        trial::start(unit, prepared)
    }
}

impl Prepared {
    fn of(data: &PlanetoidData) -> Result<Self, Error> {
        let PlanetoidData { graph, features } = data;
        let edges = graph.edges.undirected();
        let both_ways = edges.iter().flat_map(|&[i, j]| [(i, j), (j, i)]);
        let edges = Graph::from_edges(graph.edges.nodes(), both_ways)?.with_self_loops()?;
        let features = features.scaled_to_sum_1();
        let features = SparseFeatures::new(
            features.columns(),
            features.indptr(),
            features.indices(),
            features.values().to_vec(),
        )?;
        let (labels, classes) = (graph.labels.clone(), graph.set.classes());
        let train = graph.split.train.clone();
        Ok(Self {
            task: Task::new(edges.graph, features, labels, classes, train)?,
            split: graph.split.clone(),
        })
    }
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

    /// What the files must hold: the sizes of the graphs as they are published, and of the split.
    pub(super) fn expected(set: PlanetoidSet) -> Self {
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

#[cfg(test)]
mod tests {
    use super::super::{Cut, Norms, Plan};
    use super::*;
    use crate::Scale;
    use crate::tables::Remedy;
    use bochner_datasets::Policy;

    #[test]
    fn what_is_not_there_is_skipped_with_its_command() {
        let nowhere = tempfile::tempdir().unwrap();
        let store = DataStore::new(Policy::Offline).with_cache(nowhere.path());
        let (mut suite, skipped) = Nodes::load(&PlanetoidSet::ALL, &store).unwrap();
        assert_eq!(skipped.len(), 3);
        let fetch = |s: &Skipped| matches!(&s.remedy, Remedy::Fetch(with) if with.contains("curl"));
        assert!(skipped.iter().all(fetch));
        suite.count(&store);
        assert!(suite.counted().is_empty());
        let plan = Plan::new(
            Scale::Smoke,
            &[PlanetoidSet::Cora],
            Cut::None,
            &Norms::default(),
        );
        assert!(suite.start(&plan.units()[0]).is_err());
        assert!(plan.without(&skipped).units().is_empty());
    }
}
