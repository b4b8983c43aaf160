//! A node classifier.

pub mod heads;

use super::model::{AnyError, Training};
use super::{Evaluation, Findings, Moment, read_settings, sizes};
use crate::suite::Source;
use crate::{Error, Trial};
use bochner_datasets::{CsrMatrix, EdgeList, PlanetoidData, PlantedPartition, Split};
use bochner_graph::{Graph, GraphAttention, GraphInspection, SparseFeatures};
use bochner_models::node_classifier::{NodeClassifierConfig, Task, Trainer, TrainingConfig};
use bochner_numerics::Seed;
use bochner_report::Unit;
use ndarray::Array3;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// The settings of a node classifier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeSettings {
    /// The model.
    pub model: NodeClassifierConfig,
    /// The norm of its attention's magnitudes; absent where it has no choice.
    pub p: Option<f64>,
    /// Its spectral points R; absent where it has none.
    pub points: Option<usize>,
    /// The training.
    pub training: TrainingConfig,
    /// Passes over the graph, at most.
    pub epochs: usize,
    /// The passes in a row without progress on the validation part after which training ends.
    pub patience: NonZeroUsize,
}

/// The seed whose units keep their spectral points, for pictures.
const PICTURED: u64 = 0;

/// A graph of which scale `smoke` needs no file. It has about the proportions of Cora.
pub(crate) const PLANTED: PlantedPartition = PlantedPartition {
    nodes: 700,
    edges: 1400,
    classes: 7,
    features: 350,
    words: 18,
    same_class: 0.8,
    own_words: 0.4,
};

/// A graph as it is learned from.
///
/// Edges lead both ways, each once, and from every node to itself; what the file says of self loops is
/// not counted twice. The features of a node are divided by their sum.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) task: Task,
    pub(crate) split: Split,
    /// Whether what the heads have learnt is measured, in the epoch of the V-number and after the last one.
    looked_at: bool,
}

impl Prepared {
    /// Prepares a graph.
    ///
    /// # Errors
    /// What the classifier says of data that it cannot learn from.
    pub(crate) fn of(data: &PlanetoidData) -> Result<Self, Error> {
        let PlanetoidData { graph, features } = data;
        let (labels, classes) = (graph.labels.clone(), graph.set.classes());
        Self::new(&graph.edges, features, (labels, classes), &graph.split)
    }

    /// Draws [`PLANTED`]: 20 nodes of each class to train on, the next 200 for validation and 300 for test.
    ///
    /// # Errors
    /// The errors of [`of`](Self::of).
    pub(crate) fn planted() -> Result<Self, Error> {
        let drawn = PLANTED.draw(Seed::new(5));
        let drawn = drawn.expect("all numbers are within their bounds");
        let split = Split {
            train: (0..140).collect(),
            validation: (140..340).collect(),
            test: (340..640).collect(),
        };
        let labels = (drawn.labels, PLANTED.classes);
        Self::new(&drawn.edges, &drawn.features, labels, &split)
    }

    fn new(
        edges: &EdgeList,
        features: &CsrMatrix,
        (labels, classes): (Vec<Option<usize>>, usize),
        split: &Split,
    ) -> Result<Self, Error> {
        let nodes = edges.nodes();
        let edges = edges.undirected();
        let both_ways = edges.iter().flat_map(|&[i, j]| [(i, j), (j, i)]);
        let edges = Graph::from_edges(nodes, both_ways)?.with_self_loops()?;
        let features = features.scaled_to_sum_1();
        let features = SparseFeatures::new(
            features.columns(),
            features.indptr(),
            features.indices(),
            features.values().to_vec(),
        )?;
        let train = split.train.clone();
        Ok(Self {
            task: Task::new(edges.graph, features, labels, classes, train)?,
            split: split.clone(),
            looked_at: false,
        })
    }

    /// The graph, on which what the heads have learnt is measured.
    pub(crate) fn looked_at(self) -> Self {
        let looked_at = true;
        Self { looked_at, ..self }
    }
}

impl Source for Prepared {
    fn start<'a>(&'a self, unit: &Unit) -> Result<Box<dyn Trial + 'a>, AnyError> {
        let settings: NodeSettings = read_settings(unit)?;
        let (seed, task) = (Seed::new(unit.seed), self.task.clone());
        let mut trial = Nodes {
            trainer: Trainer::new(&settings.model, &settings.training, task, seed)?,
            prepared: self,
            patience: settings.patience,
            seed: unit.seed,
            start: None,
        };
        if self.looked_at {
            trial.start = trial.before_training()?;
        }
        Ok(Box::new(trial))
    }
}

struct Nodes<'a> {
    trainer: Trainer,
    prepared: &'a Prepared,
    patience: NonZeroUsize,
    seed: u64,
    /// The first layer's heads before training, where they are looked at.
    start: Option<heads::Start>,
}

/// The first layer's attention as it is now, with so many points drawn of its density, or as many as in training;
/// `None` without attention.
fn look(
    trainer: &Trainer,
    points: Option<usize>,
) -> Result<Option<GraphInspection<f32>>, AnyError> {
    let Some([layer, ..]) = trainer.model().attention() else {
        return Ok(None);
    };
    let task = trainer.task();
    let inspect = |layer: &GraphAttention<f32>| layer.inspect(task.graph(), task.features());
    Ok(Some(match points {
        None => inspect(layer)?,
        Some(points) => inspect(&layer.with_points(points)?)?,
    }))
}

/// Points of the density as it is now, for the test of its shape; `None` without a density.
fn tested(trainer: &Trainer) -> Result<Option<Array3<f32>>, AnyError> {
    Ok(look(trainer, Some(heads::TESTED))?.and_then(|drawn| drawn.points))
}

impl Nodes<'_> {
    fn before_training(&self) -> Result<Option<heads::Start>, AnyError> {
        let trainer = &self.trainer;
        let (Some(seen), Some(tested)) = (look(trainer, None)?, tested(trainer)?) else {
            return Ok(None);
        };
        let seed = Seed::new(self.seed).child("energy test");
        Ok(Some(heads::Start::new(&seen, tested, seed)))
    }
}

impl Trial for Nodes<'_> {
    fn model(&self) -> &dyn Training {
        &self.trainer
    }

    fn model_mut(&mut self) -> &mut dyn Training {
        &mut self.trainer
    }

    fn rows(&self) -> [usize; 3] {
        sizes(&self.prepared.split)
    }

    fn evaluate(&self) -> Result<Evaluation, AnyError> {
        let logits = self.trainer.predict()?;
        let on = |nodes: &[usize]| self.trainer.task().assess(logits.view(), nodes);
        let validation = on(&self.prepared.split.validation)?;
        Ok(Evaluation {
            validation: Some(validation.error),
            validation_loss: Some(validation.cross_entropy),
            test: on(&self.prepared.split.test)?.error,
            ..Evaluation::default()
        })
    }

    fn patience(&self) -> Option<NonZeroUsize> {
        Some(self.patience)
    }

    fn inspected(&self) -> &'static [Moment] {
        match self.prepared.looked_at {
            true => &[Moment::OfV],
            false => &[],
        }
    }

    fn findings(&self, _: Moment, _: &dyn Fn() -> bool) -> Result<Findings, AnyError> {
        let Some(seen) = look(&self.trainer, None)? else {
            return Ok(Findings::default());
        };
        let mut findings = Findings::default();
        if let Some(start) = &self.start
            && let Some(tested) = tested(&self.trainer)?
        {
            findings = heads::measures(&seen, &tested, start)?;
        }
        let findings = findings.with("spread", &heads::spread(&seen.weights));
        let Some(mut heads) = heads::learnt(&seen) else {
            return Ok(findings);
        };
        if self.seed != PICTURED {
            heads.points = None;
        }
        Ok(findings.with("heads", &heads))
    }
}
