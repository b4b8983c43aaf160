//! The task of a node classifier.

use super::Sampling;
use crate::Error;
use crate::assessment::Assessment;
use bochner_graph::{AttributedGraph, Graph, SparseFeatures};
use bochner_numerics::argument;
use ndarray::{Array2, ArrayView2};

/// A graph with features, whose nodes have classes, and the nodes whose classes may be learned from.
///
/// The features of all nodes and all edges are there in training; the classes of nodes that are not
/// trained on are read by [`Task::assess`] alone. Nothing is added to the graph: attention that is to
/// see a node itself needs [`Graph::with_self_loops`].
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    graph: Graph,
    features: SparseFeatures<f32>,
    labels: Vec<Option<usize>>,
    classes: usize,
    train: Vec<usize>,
    /// The training nodes with their classes.
    labelled: Vec<(usize, usize)>,
    attributes: Option<Array2<f32>>,
    sampling: Option<Sampling>,
}

impl Task {
    /// A task with features `[N, d]`, the class of each node where it has one, and the nodes to learn
    /// from; one that is named twice counts twice.
    ///
    /// # Errors
    /// [`Error::Argument`] without nodes, edges, features, classes or training nodes, if there is not one row of
    /// features and one label a node, if the graph's sources are not its targets, for a training node that is
    /// not there, or a label that is no class; [`Error::Unlabelled`] for a training node without label.
    /// Features that are no numbers are refused by [`SparseFeatures::new`].
    pub fn new(
        graph: Graph,
        features: SparseFeatures<f32>,
        labels: Vec<Option<usize>>,
        classes: usize,
        train: Vec<usize>,
    ) -> Result<Self, Error> {
        let nodes = graph.targets();
        for (what, length) in [
            ("nodes", nodes),
            ("edges", graph.edge_count()),
            ("features", features.columns()),
            ("classes", classes),
            ("training nodes", train.len()),
        ] {
            argument::at_least_one(what, length)?;
        }
        argument::shape("sources of the graph", &[nodes], &[graph.sources()])?;
        argument::shape("rows of features", &[nodes], &[features.rows()])?;
        argument::shape("labels", &[nodes], &[labels.len()])?;
        for (node, label) in labels.iter().enumerate() {
            if let Some(label) = *label {
                argument::index(format!("label of node {node}"), label, classes)?;
            }
        }
        let mut task = Self {
            graph,
            features,
            labels,
            classes,
            labelled: Vec::new(),
            train,
            attributes: None,
            sampling: None,
        };
        task.labelled = task.labelled(&task.train)?;
        Ok(task)
    }

    /// The task with attributes of its edges, `[E, G]`, in the order in which the graph was given them.
    ///
    /// # Errors
    /// [`Error::Argument`] unless there is one row an edge and at least one column, and for NaN and infinity.
    pub fn with_attributes(self, attributes: Array2<f32>) -> Result<Self, Error> {
        let columns = attributes.ncols();
        argument::at_least_one("columns of attributes", columns)?;
        let expected = [self.graph.edge_count(), columns];
        argument::shape("attributes", &expected, attributes.shape())?;
        argument::finite("attributes", &expected, &attributes)?;
        Ok(Self {
            attributes: Some(attributes),
            ..self
        })
    }

    /// The task learned from samples of the graph: an epoch goes through the training nodes in random order,
    /// some at a time.
    pub fn sampled(self, sampling: Sampling) -> Self {
        Self {
            sampling: Some(sampling),
            ..self
        }
    }

    /// The sampling of the graph in training, if it is sampled.
    pub fn sampling(&self) -> Option<&Sampling> {
        self.sampling.as_ref()
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The graph with the attributes of its edges, if there are any.
    pub fn attributed(&self) -> AttributedGraph<'_, f32> {
        AttributedGraph {
            graph: &self.graph,
            attributes: self.attributes.as_ref().map(|attributes| attributes.view()),
        }
    }

    /// The features of all nodes, `[N, d]`.
    pub fn features(&self) -> &SparseFeatures<f32> {
        &self.features
    }

    /// The class of each node where it has one.
    pub(super) fn labels(&self) -> &[Option<usize>] {
        &self.labels
    }

    /// The number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The nodes to learn from, with their classes.
    pub(super) fn training_nodes(&self) -> &[(usize, usize)] {
        &self.labelled
    }

    /// The nodes to learn from.
    pub fn train(&self) -> &[usize] {
        &self.train
    }

    /// Nodes with their classes.
    ///
    /// # Errors
    /// [`Error::Argument`] for a node that is not there, [`Error::Unlabelled`].
    fn labelled(&self, nodes: &[usize]) -> Result<Vec<(usize, usize)>, Error> {
        let rows = self.labels.len();
        let class = |&node: &usize| {
            argument::index("nodes", node, rows)?;
            Ok((node, self.labels[node].ok_or(Error::Unlabelled { node })?))
        };
        nodes.iter().map(class).collect()
    }

    /// Assesses logits `[N, classes]` on some nodes.
    ///
    /// # Errors
    /// [`Error::Argument`] for logits of another shape, without nodes, or for a node that is not there;
    /// [`Error::Unlabelled`].
    ///
    /// # Numerics
    /// The sums are in double precision and relative to a node's largest logit, so that no finite logits overflow.
    pub fn assess(&self, logits: ArrayView2<f32>, nodes: &[usize]) -> Result<Assessment, Error> {
        let expected = [self.labels.len(), self.classes];
        argument::shape("logits", &expected, logits.shape())?;
        argument::at_least_one("number of nodes", nodes.len())?;
        let labelled = self.labelled(nodes)?;
        Ok(Assessment::of(logits, &labelled))
    }
}
