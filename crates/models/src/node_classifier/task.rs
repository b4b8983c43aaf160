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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use ndarray::{arr2, array};

    /// Two rings of nodes, one for each class, joined in one place; a node without label.
    pub(crate) fn rings(nodes: usize) -> Task {
        let half = nodes / 2;
        let ring = |i: usize| (i / half) * half + (i + 1) % half;
        let edges = (0..2 * half).flat_map(|i| [(i, ring(i)), (ring(i), i)]);
        let graph = Graph::from_edges(2 * half, edges.chain([(0, half), (half, 0)])).unwrap();
        let words = Array2::from_shape_fn((2 * half, 6), |(i, word)| {
            let own = word % 2 == i / half;
            f32::from(u8::from(
                (i * 7 + word * 5) % 4 == 0 || (own && (i + word) % 3 == 0),
            ))
        });
        let features = SparseFeatures::from_dense(words.view()).unwrap();
        let labels = (0..2 * half).map(|i| (i != 3).then_some(i / half));
        let train = vec![0, 1, half, half + 1];
        let graph = graph.with_self_loops().unwrap().graph;
        Task::new(graph, features, labels.collect(), 2, train).unwrap()
    }

    fn parts() -> (Graph, SparseFeatures<f32>, Vec<Option<usize>>) {
        let graph = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
        let features = SparseFeatures::from_dense(arr2(&[[1.0], [2.0], [0.0]]).view()).unwrap();
        (graph, features, vec![Some(0), Some(1), None])
    }

    #[test]
    fn misfits_are_refused() {
        let (graph, features, labels) = parts();
        let task = |graph: &Graph, labels: &[Option<usize>], classes, train: &[usize]| {
            let features = features.clone();
            Task::new(
                graph.clone(),
                features,
                labels.to_vec(),
                classes,
                train.to_vec(),
            )
        };
        assert!(task(&graph, &labels, 2, &[0, 1]).is_ok());
        let lonely = Graph::from_edges(3, []).unwrap();
        for (graph, labels, classes, train, message) in [
            (
                &graph,
                &labels[..],
                1,
                &[0][..],
                "`label of node 1` holds the index 1",
            ),
            (&graph, &labels, 2, &[0, 2], "node 2 has no label"),
            (&graph, &labels, 2, &[3], "`nodes` holds the index 3"),
            (&graph, &labels, 2, &[], "`training nodes` is 0"),
            (&graph, &labels[..2], 2, &[0], "`labels` has length 2"),
            (&lonely, &labels, 2, &[0], "`edges` is 0"),
        ] {
            let error = task(graph, labels, classes, train).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
        let bipartite = Graph::bipartite(3, 2, [(0, 0)]).unwrap();
        assert!(task(&bipartite, &labels, 2, &[0]).is_err());
        let more = Graph::from_edges(4, [(0, 1)]).unwrap();
        assert!(task(&more, &labels, 2, &[0]).is_err());
    }

    #[test]
    fn features_that_are_no_numbers_are_refused() {
        let nan = SparseFeatures::new(1, &[0, 1], &[0], vec![f32::NAN]);
        assert!(matches!(nan, Err(bochner_graph::Error::Argument(_))));
    }

    #[test]
    fn an_assessment_worked_out_by_hand() {
        let (graph, features, _) = parts();
        let labels = vec![Some(0), Some(1), Some(0)];
        let task = Task::new(graph, features, labels, 2, vec![0]).unwrap();
        // Probabilities (1/2, 1/2): the first of equal logits counts. (3/4, 1/4): wrong.
        let logits = array![[5.0, 5.0], [3f32.ln(), 0.0], [1e30, -1e30]];
        let seen = task.assess(logits.view(), &[0, 1]).unwrap();
        assert_eq!(seen.error, 0.5);
        let want = (2f64.ln() + 4f64.ln()) / 2.0;
        assert!((seen.cross_entropy - want).abs() < 1e-6, "{seen:?}");
        let want = (0.5 + 2.0 * 0.75f64.powi(2)) / 2.0;
        assert!((seen.brier - want).abs() < 1e-6, "{seen:?}");
        let sure = task.assess(logits.view(), &[2]).unwrap();
        assert_eq!(
            (sure.error, sure.cross_entropy, sure.brier),
            (0.0, 0.0, 0.0)
        );
        // A count divided once: to the bit, where the sum of shares is 0.4960000000000004.
        let many: Vec<usize> = (0..500).map(|i| usize::from(i < 248)).collect();
        assert_eq!(task.assess(logits.view(), &many).unwrap().error, 0.496);
        assert!(task.assess(logits.view(), &[]).is_err());
        assert!(
            task.assess(logits.slice(ndarray::s![..2, ..]), &[0])
                .is_err()
        );
    }
}
