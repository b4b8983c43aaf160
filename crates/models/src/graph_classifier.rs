//! Classification of whole graphs: layers of graph attention or graph convolution, and pooling.

use crate::Error;
use crate::assessment::{Assessment, array};
use crate::fingerprint::fingerprint;
use crate::node_classifier::{Classified, NodeClassifier, NodeClassifierConfig};
use crate::training::{self, Objective};
use bochner_attention::card::Penalty;
use bochner_graph::{Batch, Graph, GraphAttended, LayerError, Pooling, SparseFeatures, pool_nodes};
use bochner_nn::{Element, Parameter, ParameterMut, Parameters, tape_adding_to};
use bochner_numerics::{Seed, argument, parallel::awake};
use bochner_ops::Mode;
use dfdx::prelude::OwnedTape;
use dfdx::tensor::{Cpu, Gradients, Merge, NoneTape, Tape};
use ndarray::Array2;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// Settings of a [`GraphClassifier`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphClassifierConfig {
    /// The settings of the layers, whose classes are those of the graphs.
    pub nodes: NodeClassifierConfig,
    /// The way in which the logits of a graph's nodes become the graph's. Defaults to their mean.
    #[serde(default)]
    pub pooling: Pooling,
}

/// Logits of the classes of graphs, which are the pooled logits of their nodes.
///
/// $$y_g = \mathrm{pool}\_{i \in g} \\, y_i$$
///
/// *where* $y_i$ are the logits of a [`NodeClassifier`]. Graphs are read several at a time, as one [`Batch`]; a graph's
/// logits are the same in every batch.
#[derive(Clone, Debug)]
pub struct GraphClassifier<E: Element> {
    nodes: NodeClassifier<E>,
    pooling: Pooling,
}

impl<E: Element> GraphClassifier<E> {
    /// A classifier with random initial values.
    ///
    /// # Errors
    /// A setting that is out of range is refused; [`Error::Unsupported`] for a kernel whose spectral points are inferred
    /// from all nodes, by which the graphs of a batch would depend on each other.
    pub fn try_new(
        device: &Cpu,
        config: &GraphClassifierConfig,
        seed: Seed,
    ) -> Result<Self, Error> {
        let nodes = NodeClassifier::try_new(device, &config.nodes, seed)?;
        let mut layers = nodes.attention().into_iter().flatten();
        if layers.any(|layer| layer.config().infers_points()) {
            return Err(Error::Unsupported {
                what: "a batch of graphs with spectral points that are inferred from all of its nodes",
                instead: "ikan-direct, or an unconditional posterior",
            });
        }
        let pooling = config.pooling;
        Ok(Self { nodes, pooling })
    }

    /// The logits, `[B, classes]`, of the graphs of a batch, and the sum of the layers' penalties.
    ///
    /// # Errors
    /// The errors of [`NodeClassifier::apply`]; [`Error::Nn`] without graphs.
    pub fn apply<T: Tape<E, Cpu> + Merge<T>>(
        &self,
        batch: &Batch,
        features: &SparseFeatures<E>,
        tape: T,
        mode: Mode,
    ) -> Result<Classified<E, T>, Error> {
        let nodes = self.nodes.apply(batch.graph(), features, tape, mode)?;
        Ok(GraphAttended {
            output: pool_nodes(nodes.output, batch, self.pooling)?,
            penalty: nodes.penalty,
        })
    }

    /// The logits in evaluation, `[B, classes]`, of graphs whose nodes have the rows of the features one graph after the
    /// other.
    ///
    /// # Errors
    /// The errors of [`apply`](Self::apply), and [`Error::GraphLayer`] for too many nodes or edges.
    pub fn infer(
        &self,
        graphs: &[Graph],
        features: &SparseFeatures<E>,
    ) -> Result<Array2<E>, Error> {
        let batch = Batch::new(graphs).map_err(LayerError::from)?;
        let classified = self.apply(&batch, features, NoneTape, Mode::Evaluation)?;
        Ok(array(&classified.output))
    }
}

impl<E: Element> Parameters<E> for GraphClassifier<E> {
    fn for_each(&self, prefix: &str, f: &mut dyn FnMut(&str, &dyn Parameter<E>)) {
        self.nodes.for_each(prefix, f);
    }

    fn for_each_mut(&mut self, prefix: &str, f: &mut dyn FnMut(&str, &mut dyn ParameterMut<E>)) {
        self.nodes.for_each_mut(prefix, f);
    }
}

/// Graphs whose classes are to be learned.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    graphs: Vec<Graph>,
    features: SparseFeatures<f32>,
    classes: Vec<usize>,
    batch: NonZeroUsize,
    /// The first node of each graph, and the end.
    first: Vec<usize>,
}

impl Task {
    /// A task of graphs, the features of their nodes one graph after the other, `[N, d]`, the class of each graph, and
    /// the number of graphs of a step.
    ///
    /// # Errors
    /// [`Error::Argument`] without graphs, for a graph without nodes or whose sources are not its targets, and unless
    /// there is one class a graph and one row of features a node.
    pub fn new(
        graphs: Vec<Graph>,
        features: SparseFeatures<f32>,
        classes: Vec<usize>,
        batch: NonZeroUsize,
    ) -> Result<Self, Error> {
        argument::at_least_one("graphs", graphs.len())?;
        argument::shape("classes", &[graphs.len()], &[classes.len()])?;
        let mut first = vec![0];
        for (i, graph) in graphs.iter().enumerate() {
            let nodes = graph.targets();
            argument::not_empty(format!("nodes of graph {i}"), &[nodes])?;
            argument::shape(
                format!("sources of graph {i}"),
                &[nodes],
                &[graph.sources()],
            )?;
            first.push(first[i] + nodes);
        }
        argument::shape(
            "rows of features",
            &first[graphs.len()..],
            &[features.rows()],
        )?;
        Ok(Self {
            graphs,
            features,
            classes,
            batch,
            first,
        })
    }

    /// Some of the graphs as one, and the features of their nodes.
    fn batched(&self, places: &[usize]) -> Result<(Batch, SparseFeatures<f32>), LayerError> {
        let batch = Batch::new(places.iter().map(|&place| &self.graphs[place]))?;
        let nodes = places
            .iter()
            .flat_map(|&place| self.first[place]..self.first[place + 1]);
        let features = self.features.select(&nodes.collect::<Vec<_>>())?;
        Ok((batch, features))
    }
}

/// A graph classifier in training, with its data, optimiser and random stream.
///
/// The objective of a batch is the mean cross-entropy of its graphs, plus $\beta \mathrm{KL} / N_\text{train}$, plus the L2
/// term of a node classifier. An epoch goes through all graphs once, in random order.
///
/// ```
/// use bochner_graph::{AttentionKind, Graph, SparseFeatures};
/// use bochner_models::graph_classifier::{GraphClassifierConfig, Task, Trainer};
/// use bochner_models::node_classifier::{Architecture, Dropout, NodeClassifierConfig};
/// use bochner_models::training::TrainingConfig;
/// use bochner_numerics::Seed;
///
/// // Rings and stars of 5 to 12 nodes, whose nodes know their number of neighbours.
/// let graph = |i: usize| {
///     let nodes = 5 + i / 2 % 8;
///     let edges = (1..nodes).map(move |node| (if i % 2 == 0 { node - 1 } else { 0 }, node));
///     let close = (i % 2 == 0).then_some((nodes - 1, 0));
///     let edges: Vec<_> = edges.chain(close).flat_map(|(a, b)| [(a, b), (b, a)]).collect();
///     Graph::from_edges(nodes, edges)?.with_self_loops()
/// };
/// let graphs = (0..40).map(|i| Ok(graph(i)?.graph)).collect::<Result<Vec<_>, bochner_graph::Error>>()?;
/// let degrees = graphs.iter().flat_map(|graph| {
///     let edges = graph.edges();
///     (0..graph.targets()).map(move |i| edges.iter().filter(|edge| edge.1 == i).count())
/// });
/// let rows: Vec<f32> = degrees.flat_map(|degree| [1.0, degree as f32 / 3.0]).collect();
/// let rows = bochner_models::ndarray::Array2::from_shape_vec((rows.len() / 2, 2), rows)?;
/// let features = SparseFeatures::from_dense(rows.view())?;
/// let classes: Vec<usize> = (0..40).map(|i| i % 2).collect();
/// let task = Task::new(graphs.clone(), features.clone(), classes.clone(), 8.try_into()?)?;
///
/// let nodes = NodeClassifierConfig {
///     inputs: 2,
///     classes: 2,
///     architecture: Architecture::attention(AttentionKind::Classic),
///     dropout: Dropout::default(),
/// };
/// let config = GraphClassifierConfig { nodes, pooling: Default::default() };
/// let training = TrainingConfig { learning_rate: 0.02, ..TrainingConfig::default() };
/// let mut trainer = Trainer::new(&config, &training, task, Seed::new(1))?;
/// for _ in 0..100 {
///     trainer.epoch()?;
/// }
/// assert!(trainer.assess(&graphs, &features, &classes)?.error < 0.1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Trainer = training::Trainer<Task>;

impl training::Task for Task {
    type Model = GraphClassifier<f32>;
    type Config = GraphClassifierConfig;
    /// The places of the graphs.
    type Batch = Vec<usize>;
    type Output = Classified<f32, OwnedTape<f32, Cpu>>;

    const MODEL: &'static str = "graph_classifier";

    fn model(
        &self,
        config: &GraphClassifierConfig,
        seed: Seed,
    ) -> Result<GraphClassifier<f32>, Error> {
        let NodeClassifierConfig {
            inputs, classes, ..
        } = config.nodes;
        argument::shape("a node's features", &[inputs], &[self.features.columns()])?;
        argument::shape(
            "attributes of an edge",
            &[config.nodes.architecture.edge_inputs()],
            &[0],
        )?;
        for (i, &class) in self.classes.iter().enumerate() {
            argument::index(format!("class of graph {i}"), class, classes)?;
        }
        GraphClassifier::try_new(&Cpu::default(), config, seed)
    }

    fn fingerprint(&self) -> String {
        let sizes = [self.graphs.len(), self.features.columns(), self.batch.get()];
        let graphs = self.graphs.iter().flat_map(|graph| {
            let edges = graph.edges().into_iter().flat_map(<[usize; 2]>::from);
            [graph.targets(), graph.edge_count()]
                .into_iter()
                .chain(edges)
        });
        let numbers = sizes.into_iter().chain(graphs);
        let numbers = numbers.chain(self.classes.iter().copied());
        let entries = self.features.entries();
        let entries = entries.flat_map(|(row, column, x)| [row as u32, column as u32, x.to_bits()]);
        fingerprint(numbers.map(|number| number as u32).chain(entries))
    }

    fn batches(&self, next: &mut dyn FnMut() -> Seed) -> Result<Vec<Vec<usize>>, Error> {
        let mut order: Vec<usize> = (0..self.graphs.len()).collect();
        order.shuffle(&mut next().stream("order"));
        Ok(order.chunks(self.batch.get()).map(<[_]>::to_vec).collect())
    }

    fn examples(&self, batch: &Vec<usize>) -> usize {
        batch.len()
    }

    fn cut(&self, batch: &Vec<usize>, parts: NonZeroUsize) -> Option<Vec<Vec<usize>>> {
        Some(training::cut(batch, parts))
    }

    fn forward(
        &self,
        model: &GraphClassifier<f32>,
        batch: &Vec<usize>,
        gradients: Gradients<f32, Cpu>,
        seed: Seed,
    ) -> Result<Self::Output, Error> {
        let (tape, mode) = (tape_adding_to(gradients)?, Mode::Training(seed));
        let (graphs, features) = self.batched(batch)?;
        model.apply(&graphs, &features, tape, mode)
    }

    fn objective(
        &self,
        _: &GraphClassifier<f32>,
        batch: &Vec<usize>,
        classified: Self::Output,
        part: f64,
    ) -> Result<Objective, Error> {
        let classes = batch.iter().map(|&place| self.classes[place]);
        let labelled: Vec<(usize, usize)> = classes.enumerate().collect();
        let share = Penalty::PerExample.share(batch.len(), part, self.graphs.len());
        Objective::of_classes(classified.output, (classified.penalty, share), &labelled)
    }

    fn penalised(model: &GraphClassifier<f32>) -> &dyn Parameters<f32> {
        model.nodes.penalised()
    }
}

impl Trainer {
    /// The quality of the logits of graphs in evaluation: see [`GraphClassifier::infer`].
    ///
    /// # Errors
    /// The errors of [`GraphClassifier::infer`] and [`Assessment::of_rows`].
    pub fn assess(
        &self,
        graphs: &[Graph],
        features: &SparseFeatures<f32>,
        classes: &[usize],
    ) -> Result<Assessment, Error> {
        let logits = awake(|| self.model.infer(graphs, features))?;
        Assessment::of_rows(logits.view(), classes)
    }
}
