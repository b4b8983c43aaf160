//! Training a node classifier, with all nodes in one step, or some at a time.

use super::{NodeClassifier, NodeClassifierConfig, Task};
use crate::Error;
use crate::fingerprint::fingerprint;
use crate::node_classifier::Classified;
use crate::training::{self, Objective};
use bochner_attention::card::Penalty;
use bochner_graph::FanOut;
use bochner_nn::{Parameters, tape_adding_to};
use bochner_numerics::parallel::awake;
use bochner_numerics::{Seed, argument};
use bochner_ops::Mode;
use dfdx::prelude::OwnedTape;
use dfdx::tensor::{Cpu, Gradients};
use ndarray::Array2;
use rand::seq::SliceRandom;
use std::collections::HashMap;

/// A node classifier in training, with its data, optimiser and random stream.
///
/// The objective is the mean cross-entropy over the training nodes, plus
/// $\beta \mathrm{KL} / N_\text{train}$, plus $\tfrac\lambda2 \lVert\theta\rVert^2$: of all parameters with
/// attention, of those of the first layer with convolution. An epoch is one full-batch step, or, for a task that is
/// [sampled](Task::sampled), as many as it takes to see all training nodes once, in random order.
///
/// ```
/// use bochner_datasets::PlantedPartition;
/// use bochner_graph::{AttentionKind, Graph, SparseFeatures};
/// use bochner_models::node_classifier::{
///     Architecture, Dropout, NodeClassifierConfig, Task, Trainer, TrainingConfig,
/// };
/// use bochner_numerics::Seed;
/// use bochner_spectral::Implicit;
///
/// let drawn = PlantedPartition {
///     nodes: 120, edges: 240, classes: 3, features: 60, words: 6,
///     same_class: 0.9, own_words: 0.6,
/// }.draw(Seed::new(1))?;
/// let edges = drawn.edges.undirected();
/// let both_ways = edges.iter().flat_map(|&[i, j]| [(i, j), (j, i)]);
/// let graph = Graph::from_edges(120, both_ways)?.with_self_loops()?.graph;
/// let x = &drawn.features;
/// let features = SparseFeatures::new(60, x.indptr(), x.indices(), x.values().to_vec())?;
/// let task = Task::new(graph, features.row_normalised(), drawn.labels, 3, (0..30).collect())?;
///
/// let mikan = Implicit { points: 16, ..Implicit::default() };
/// let config = NodeClassifierConfig {
///     inputs: 60,
///     classes: 3,
///     architecture: Architecture::attention(AttentionKind::Kernel(mikan.into())),
///     dropout: Dropout::everywhere(0.3),
/// };
/// let training = TrainingConfig { learning_rate: 0.02, ..TrainingConfig::nodes() };
/// let mut trainer = Trainer::new(&config, &training, task, Seed::new(7))?;
/// for _ in 0..40 {
///     trainer.epoch()?;
/// }
/// let others: Vec<usize> = (30..120).collect();
/// let seen = trainer.task().assess(trainer.predict()?.view(), &others)?;
/// assert!(seen.error < 0.2, "{seen:?}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Trainer = training::Trainer<Task>;

/// The training nodes of a step with their classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Batch {
    /// All training nodes are used, in the whole graph.
    Whole,
    /// Some of them, in a sample of the graph.
    Sampled(Vec<(usize, usize)>),
}

/// The distinct nodes of a batch, which a sample of the graph is drawn around, and the row among them of each node of
/// the batch: a training node may be named more than once.
struct Distinct {
    targets: Vec<usize>,
    rows: Vec<usize>,
}

impl Distinct {
    fn new(nodes: &[(usize, usize)]) -> Self {
        let (mut targets, mut row_of) = (Vec::new(), HashMap::new());
        let row = |&(node, _): &(usize, usize)| {
            *row_of.entry(node).or_insert_with(|| {
                targets.push(node);
                targets.len() - 1
            })
        };
        let rows = nodes.iter().map(row).collect();
        Self { targets, rows }
    }
}

impl training::Task for Task {
    type Model = NodeClassifier<f32>;
    type Config = NodeClassifierConfig;
    type Batch = Batch;
    type Output = Classified<f32, OwnedTape<f32, Cpu>>;

    const MODEL: &'static str = "node_classifier";

    fn model(
        &self,
        config: &NodeClassifierConfig,
        seed: Seed,
    ) -> Result<NodeClassifier<f32>, Error> {
        let columns = self.features().columns();
        argument::shape("a node's features", &[config.inputs], &[columns])?;
        argument::shape("classes of the task", &[config.classes], &[self.classes()])?;
        let given = self
            .attributed()
            .attributes
            .map_or(0, |attributes| attributes.ncols());
        let read = config.architecture.edge_inputs();
        argument::shape("attributes of an edge", &[read], &[given])?;
        if let Some(sampling) = self.sampling() {
            let layers = config.architecture.layers();
            argument::shape("fan_outs", &[layers], &[sampling.fan_outs.len()])?;
        }
        NodeClassifier::try_new(&Cpu::default(), config, seed)
    }

    fn fingerprint(&self) -> String {
        let (graph, features) = (self.graph(), self.features());
        let sizes = [
            graph.targets(),
            graph.edge_count(),
            features.columns(),
            self.classes(),
        ];
        let edges = graph.edges().into_iter().flat_map(<[usize; 2]>::from);
        // No class is a number of its own.
        let labels = self.labels().iter().map(|label| label.map_or(0, |l| l + 1));
        let numbers = sizes.into_iter().chain(edges).chain(labels);
        let numbers = numbers.chain(self.train().iter().copied());
        let sampling = self.sampling().into_iter().flat_map(|sampling| {
            let fan_outs = sampling.fan_outs.iter().map(|fan_out| match fan_out {
                FanOut::All => 0,
                FanOut::AtMost(edges) => edges.saturating_add(1),
            });
            std::iter::once(sampling.batch.get()).chain(fan_outs)
        });
        let numbers = numbers.chain(sampling);
        let entries = features.entries();
        let entries = entries.flat_map(|(row, column, x)| [row as u32, column as u32, x.to_bits()]);
        let attributes = self.attributed().attributes;
        let attributes = attributes.iter().flatten().map(|x| x.to_bits());
        fingerprint(
            numbers
                .map(|number| number as u32)
                .chain(entries)
                .chain(attributes),
        )
    }

    fn batches(&self, next: &mut dyn FnMut() -> Seed) -> Result<Vec<Batch>, Error> {
        let Some(sampling) = self.sampling() else {
            return Ok(vec![Batch::Whole]);
        };
        let mut order = self.training_nodes().to_vec();
        order.shuffle(&mut next().stream("order"));
        let batches = order.chunks(sampling.batch.get());
        Ok(batches
            .map(|batch| Batch::Sampled(batch.to_vec()))
            .collect())
    }

    fn examples(&self, batch: &Batch) -> usize {
        match batch {
            Batch::Whole => self.training_nodes().len(),
            Batch::Sampled(nodes) => nodes.len(),
        }
    }

    fn forward(
        &self,
        model: &NodeClassifier<f32>,
        batch: &Batch,
        gradients: Gradients<f32, Cpu>,
        seed: Seed,
    ) -> Result<Self::Output, Error> {
        let (tape, mode) = (tape_adding_to(gradients)?, Mode::Training(seed));
        match batch {
            Batch::Whole => model.apply(self.attributed(), self.features(), tape, mode),
            Batch::Sampled(nodes) => {
                let targets = Distinct::new(nodes).targets;
                let neighbourhoods = self.neighbourhoods(&targets, seed.child("neighbours"))?;
                let attributes = self.attributed().attributes;
                model.apply_sampled(&neighbourhoods, attributes, self.features(), tape, mode)
            }
        }
    }

    fn objective(
        &self,
        _: &NodeClassifier<f32>,
        batch: &Batch,
        classified: Self::Output,
        part: f64,
    ) -> Result<Objective, Error> {
        let of_sample: Vec<(usize, usize)>;
        let labelled = match batch {
            Batch::Whole => self.training_nodes(),
            Batch::Sampled(nodes) => {
                let classes = nodes.iter().map(|&(_, class)| class);
                of_sample = Distinct::new(nodes).rows.into_iter().zip(classes).collect();
                &of_sample
            }
        };
        let nodes = self.training_nodes().len();
        let share = Penalty::PerExample.share(self.examples(batch), part, nodes);
        Objective::of_classes(classified.output, (classified.penalty, share), labelled)
    }

    fn penalised(model: &NodeClassifier<f32>) -> &dyn Parameters<f32> {
        model.penalised()
    }
}

impl Trainer {
    /// The logits of all nodes in evaluation, `[N, classes]`.
    ///
    /// # Errors
    /// The errors of [`Trainer::epoch`](training::Trainer::epoch), apart from those of the gradient.
    pub fn predict(&self) -> Result<Array2<f32>, Error> {
        awake(|| {
            self.model
                .infer(self.task.attributed(), self.task.features())
        })
    }
}
