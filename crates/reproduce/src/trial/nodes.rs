//! A node classifier.

pub mod heads;

use super::{EarlyStopping, Evaluation, Facts, Findings, Keep, Rule, Step, failed};
use crate::{Error, Trial};
use bochner_datasets::{CsrMatrix, EdgeList, PlanetoidData, PlantedPartition, Split};
use bochner_graph::{Graph, GraphAttention, GraphInspection, SparseFeatures};
use bochner_models::node_classifier::{
    Architecture, NodeClassifierConfig, Task, Trainer, TrainingConfig,
};
use bochner_numerics::Seed;
use bochner_report::Unit;
use heads::Kept;
use ndarray::Array3;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::num::NonZeroUsize;
use std::path::Path;

/// The settings of a node classifier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeSettings {
    /// What its two layers are, with all their settings.
    pub architecture: Architecture,
    /// The norm of its magnitudes; absent where it has no choice.
    pub p: Option<f64>,
    /// Its spectral points R; absent where it has none.
    pub points: Option<usize>,
    /// The share of inputs, and with attention of transformed features and weights, that is dropped in
    /// training.
    pub dropout: f64,
    /// The factor of half the squared norm of the parameters in the objective.
    pub l2: f64,
    /// Passes over the graph, at most.
    pub epochs: usize,
    /// The passes in a row without progress on the validation part after which training ends.
    pub patience: NonZeroUsize,
    /// Adam's step size.
    pub learning_rate: f64,
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

/// Sets up the training of a unit.
pub(crate) fn start<'a>(unit: &Unit, prepared: &'a Prepared) -> Result<Box<dyn Trial + 'a>, Error> {
    let settings: NodeSettings = crate::trial::read_settings(unit)?;
    let trainer = trainer(&settings, prepared, Seed::new(unit.seed));
    let mut classifier = Classifier {
        unit: unit.clone(),
        prepared,
        rule: EarlyStopping {
            patience: settings.patience,
        },
        trainer: trainer.map_err(|error| failed(unit, &error))?,
        start: None,
    };
    if prepared.looked_at {
        classifier.start = classifier.before_training()?;
    }
    Ok(Box::new(classifier))
}

fn trainer(
    settings: &NodeSettings,
    prepared: &Prepared,
    seed: Seed,
) -> Result<Trainer, bochner_models::Error> {
    let task = prepared.task.clone();
    let config = NodeClassifierConfig {
        inputs: task.features().columns(),
        classes: task.classes(),
        architecture: settings.architecture.clone(),
        dropout: settings.dropout,
    };
    let training = TrainingConfig {
        learning_rate: settings.learning_rate,
        l2: settings.l2,
        ..TrainingConfig::default()
    };
    Trainer::new(&config, &training, task, seed)
}

struct Classifier<'a> {
    unit: Unit,
    prepared: &'a Prepared,
    rule: EarlyStopping,
    trainer: Trainer,
    /// The first layer's heads before training, where they are looked at.
    start: Option<heads::Start>,
}

impl Classifier<'_> {
    fn failed(&self, error: &dyn Display) -> Error {
        failed(&self.unit, error)
    }

    /// The first layer's attention as it is now, with so many points drawn of its density, or as many as in training;
    /// `None` without attention.
    fn look(&self, points: Option<usize>) -> Result<Option<GraphInspection<f32>>, Error> {
        let Some([layer, _]) = self.trainer.model().attention() else {
            return Ok(None);
        };
        let task = self.trainer.task();
        let inspect = |layer: &GraphAttention<f32>| layer.inspect(task.graph(), task.features());
        let seen = match points {
            None => inspect(layer),
            Some(points) => layer.with_points(points).and_then(|layer| inspect(&layer)),
        };
        seen.map(Some).map_err(|error| self.failed(&error))
    }

    /// Points of the density as it is now, for the test of its shape; `None` without a density.
    fn tested(&self) -> Result<Option<Array3<f32>>, Error> {
        let drawn = self.look(Some(heads::TESTED))?;
        Ok(drawn.and_then(|drawn| drawn.points))
    }

    fn energy_test(&self) -> Seed {
        Seed::new(self.unit.seed).child("energy test")
    }

    fn before_training(&self) -> Result<Option<heads::Start>, Error> {
        let (Some(seen), Some(tested)) = (self.look(None)?, self.tested()?) else {
            return Ok(None);
        };
        let start = heads::Start::of(&seen, &tested, self.energy_test());
        start.map(Some).map_err(|error| self.failed(&error))
    }

    /// What the heads have learnt, and how they differ.
    fn measures(&self, seen: &GraphInspection<f32>) -> Result<Findings, Error> {
        let (Some(tested), Some(start)) = (self.tested()?, self.start) else {
            return Ok(Findings::default());
        };
        let measures = heads::measures(seen, &tested, start, self.energy_test());
        measures.map_err(|error| self.failed(&error))
    }

    fn measured(&self) -> Result<Evaluation, bochner_models::Error> {
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
}

impl Trial for Classifier<'_> {
    fn facts(&self) -> Facts {
        let split = &self.prepared.split;
        Facts {
            parameters: self.trainer.parameter_count(),
            train_rows: split.train.len(),
            validation_rows: split.validation.len(),
            test_rows: split.test.len(),
        }
    }

    fn epoch(&mut self) -> Result<Step, Error> {
        let report = self.trainer.epoch();
        let report = report.map_err(|error| self.failed(&error))?;
        Ok(Step {
            loss: report.loss,
            mse: report.squared_error,
        })
    }

    fn evaluate(&self) -> Result<Evaluation, Error> {
        self.measured().map_err(|error| self.failed(&error))
    }

    fn save(&self, path: &Path) -> Result<(), Error> {
        let saved = self.trainer.save(path);
        saved.map_err(|error| Error::checkpoint(path, &error))
    }

    fn resume(&mut self, path: &Path) -> Result<(), Error> {
        Error::unless_verified(path, self.trainer.resume(path))
    }

    fn epochs_done(&self) -> usize {
        self.trainer.steps_done()
    }

    fn rule(&self) -> Rule {
        Rule::EarlyStopping(self.rule)
    }

    fn keeps(&self) -> Keep {
        match self.prepared.looked_at {
            true => Keep::UntilLookedAt,
            false => Keep::Nothing,
        }
    }

    fn findings(&self) -> Result<Findings, Error> {
        let Some(seen) = self.look(None)? else {
            return Ok(Findings::default());
        };
        let findings = match self.prepared.looked_at {
            true => self.measures(&seen)?,
            false => Findings::default(),
        };
        let findings = findings.with("spread", &heads::spread(&seen.weights));
        let kept = match self.unit.seed {
            PICTURED => Kept::Points,
            _ => Kept::CorrelationAlone,
        };
        Ok(match heads::learnt(&seen, kept) {
            Some(heads) => findings.with("heads", &heads),
            None => findings,
        })
    }
}
