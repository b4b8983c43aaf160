//! Classifiers of whole graphs.

use crate::common::message;
use bochner_graph::{AttentionKind, EdgeKernel, Graph, Pooling, SparseFeatures};
use bochner_models::Error;
use bochner_models::graph_classifier::{GraphClassifier, GraphClassifierConfig, Task, Trainer};
use bochner_models::node_classifier::{Architecture, Dropout, NodeClassifierConfig};
use bochner_models::training::TrainingConfig;
use bochner_numerics::{Seed, relative_error};
use bochner_spectral::Implicit;
use dfdx::prelude::Cpu;
use ndarray::{Array2, ArrayView1, ArrayView2, Axis, s};
use std::num::NonZeroUsize;

const GRAPHS: usize = 24;

/// Rings and, at odd places, stars of 5 to 12 nodes, whose nodes know their number of neighbours.
fn graphs() -> (Vec<Graph>, Array2<f32>) {
    let (mut graphs, mut rows) = (Vec::new(), Vec::new());
    for i in 0..GRAPHS {
        let nodes = 5 + i / 2 % 8;
        let next = |node| if i % 2 == 0 { (node + 1) % nodes } else { 0 };
        let from = usize::from(i % 2 == 1);
        let edges = (from..nodes).flat_map(|node| [(node, next(node)), (next(node), node)]);
        let graph = Graph::from_edges(nodes, edges).unwrap();
        let mut degrees = vec![0.0; nodes];
        graph.edges().iter().for_each(|edge| degrees[edge.1] += 1.0);
        rows.extend(degrees.into_iter().flat_map(|degree| [1.0, degree / 3.0]));
        graphs.push(graph.with_self_loops().unwrap().graph);
    }
    let rows = Array2::from_shape_vec((rows.len() / 2, 2), rows).unwrap();
    (graphs, rows)
}

fn sparse(rows: ArrayView2<f32>) -> SparseFeatures<f32> {
    SparseFeatures::from_dense(rows).unwrap()
}

fn classes() -> Vec<usize> {
    (0..GRAPHS).map(|i| i % 2).collect()
}

pub(crate) fn task(batch: usize) -> Task {
    let (graphs, rows) = graphs();
    let batch = NonZeroUsize::new(batch).unwrap();
    Task::new(graphs, sparse(rows.view()), classes(), batch).unwrap()
}

pub(crate) fn config(architecture: Architecture, pooling: Pooling) -> GraphClassifierConfig {
    GraphClassifierConfig {
        nodes: NodeClassifierConfig {
            inputs: 2,
            classes: 2,
            architecture,
            dropout: Dropout::default(),
        },
        pooling,
    }
}

const ALL: [Pooling; 3] = [Pooling::Mean, Pooling::Sum, Pooling::Max];

#[test]
fn every_architecture_and_pooling_learns() {
    let (graphs, rows) = graphs();
    let training = TrainingConfig {
        learning_rate: 0.02,
        ..TrainingConfig::default()
    };
    for architecture in [
        Architecture::attention(AttentionKind::Classic),
        Architecture::convolution(8),
    ] {
        for pooling in ALL {
            let config = config(architecture.clone(), pooling);
            let mut trainer = Trainer::new(&config, &training, task(8), Seed::new(3)).unwrap();
            for _ in 0..60 {
                trainer.epoch().unwrap();
            }
            let seen = trainer.assess(&graphs, &sparse(rows.view()), &classes());
            assert!(seen.as_ref().unwrap().error < 0.1, "{pooling:?}: {seen:?}");
        }
    }
}

#[test]
fn a_graph_has_the_same_logits_alone_and_in_a_batch() {
    let (graphs, rows) = graphs();
    for pooling in ALL {
        let config = config(Architecture::attention(AttentionKind::Dynamic), pooling);
        let model = GraphClassifier::try_new(&Cpu::default(), &config, Seed::new(3)).unwrap();
        let together = model.infer(&graphs, &sparse(rows.view())).unwrap();
        let mut start = 0;
        for (graph, together) in graphs.iter().zip(together.axis_iter(Axis(0))) {
            let end = start + graph.targets();
            let own = sparse(rows.slice(s![start..end, ..]));
            let alone = model.infer(std::slice::from_ref(graph), &own).unwrap();
            let wide = |row: ArrayView1<f32>| row.mapv(f64::from).to_vec();
            assert!(relative_error(&wide(alone.row(0)), &wide(together)) < 1e-6);
            start = end;
        }
    }
}

#[test]
fn misfits_are_refused() {
    let (graphs, rows) = graphs();
    let made = |graphs: &[Graph], classes: Vec<usize>, named: &str| {
        let features = sparse(rows.view());
        let made = Task::new(graphs.to_vec(), features, classes, NonZeroUsize::MIN);
        let said = message(made);
        assert!(said.starts_with(named), "{said}");
    };
    made(&[], vec![], "`graphs` is 0");
    made(&graphs, vec![0], "`classes` has length 1");
    made(&graphs[1..], vec![0; GRAPHS - 1], "`rows of features`");
    let mut empty = graphs.clone();
    empty[2] = Graph::from_edges(0, []).unwrap();
    made(&empty, classes(), "`nodes of graph 2`");

    let refused = |config: &GraphClassifierConfig| {
        Trainer::new(config, &TrainingConfig::default(), task(8), Seed::new(3)).unwrap_err()
    };
    let mut config = config(Architecture::convolution(8), Pooling::Mean);
    config.nodes.classes = 1;
    let said = refused(&config).to_string();
    assert!(
        said.starts_with("`class of graph 1` holds the index 1"),
        "{said}"
    );
    let inferred = AttentionKind::Kernel(EdgeKernel::from(Implicit::default()));
    (config.nodes.classes, config.nodes.architecture) = (2, Architecture::attention(inferred));
    assert!(matches!(refused(&config), Error::Unsupported { .. }));
}
