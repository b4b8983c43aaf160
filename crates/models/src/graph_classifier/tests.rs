//! Graph classifiers in training.

use super::*;
use crate::node_classifier::{Architecture, Dropout};
use crate::training::TrainingConfig;
use bochner_graph::{AttentionKind, EdgeKernel};
use bochner_numerics::relative_error;
use bochner_spectral::Implicit;
use ndarray::{Axis, s};

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

fn classes() -> Vec<usize> {
    (0..GRAPHS).map(|i| i % 2).collect()
}

fn task(batch: usize) -> Task {
    let (graphs, rows) = graphs();
    let features = SparseFeatures::from_dense(rows.view()).unwrap();
    let batch = NonZeroUsize::new(batch).unwrap();
    Task::new(graphs, features, classes(), batch).unwrap()
}

fn config(architecture: Architecture, pooling: Pooling) -> GraphClassifierConfig {
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

fn trainer(config: &GraphClassifierConfig) -> Trainer {
    trainer_of(config, task(8))
}

fn trainer_of(config: &GraphClassifierConfig, task: Task) -> Trainer {
    let training = TrainingConfig {
        learning_rate: 0.02,
        ..TrainingConfig::default()
    };
    Trainer::new(config, &training, task, Seed::new(3)).unwrap()
}

const ALL: [Pooling; 3] = [Pooling::Mean, Pooling::Sum, Pooling::Max];

#[test]
fn every_architecture_and_pooling_learns() {
    let task = task(8);
    for architecture in [
        Architecture::attention(AttentionKind::Classic),
        Architecture::convolution(8),
    ] {
        for pooling in ALL {
            let mut trainer = trainer(&config(architecture.clone(), pooling));
            for _ in 0..200 {
                trainer.epoch().unwrap();
            }
            let seen = trainer.assess(&task.graphs, &task.features, &classes());
            assert!(seen.as_ref().unwrap().error < 0.1, "{pooling:?}: {seen:?}");
        }
    }
}

#[test]
fn a_graph_has_the_same_logits_alone_and_in_a_batch() {
    let (graphs, rows) = graphs();
    let features = |rows: ndarray::ArrayView2<f32>| SparseFeatures::from_dense(rows).unwrap();
    for pooling in ALL {
        let config = config(Architecture::attention(AttentionKind::Dynamic), pooling);
        let model = GraphClassifier::try_new(&Cpu::default(), &config, Seed::new(3)).unwrap();
        let together = model.infer(&graphs, &features(rows.view())).unwrap();
        let mut start = 0;
        for (graph, together) in graphs.iter().zip(together.axis_iter(Axis(0))) {
            let end = start + graph.targets();
            let own = features(rows.slice(s![start..end, ..]));
            let alone = model.infer(std::slice::from_ref(graph), &own).unwrap();
            let wide = |row: ndarray::ArrayView1<f32>| row.mapv(f64::from).to_vec();
            assert!(relative_error(&wide(alone.row(0)), &wide(together)) < 1e-6);
            start = end;
        }
    }
}

#[test]
fn a_resumed_run_ends_with_the_same_bits() {
    let config = config(
        Architecture::attention(AttentionKind::Classic),
        Pooling::Mean,
    );
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.safetensors");
    let (mut whole, mut resumed) = (trainer(&config), trainer(&config));
    whole.epoch().unwrap();
    whole.save(&path).unwrap();
    whole.epoch().unwrap();
    resumed.resume(&path).unwrap();
    resumed.epoch().unwrap();
    let logits = |trainer: &Trainer| {
        let Task {
            graphs, features, ..
        } = trainer.task();
        trainer.model().infer(graphs, features).unwrap()
    };
    assert_eq!(logits(&whole), logits(&resumed));
    let mut other = trainer_of(&config, task(4));
    let refused = other.resume(&path).unwrap_err().to_string();
    assert!(refused.contains("task is"), "{refused}");
}

#[test]
fn misfits_are_refused() {
    let (graphs, rows) = graphs();
    let features = SparseFeatures::from_dense(rows.view()).unwrap();
    let made = |graphs: &[Graph], classes: Vec<usize>| {
        let one = NonZeroUsize::MIN;
        let made = Task::new(graphs.to_vec(), features.clone(), classes, one);
        made.err().map(|error| error.to_string())
    };
    let says = |got: Option<String>, want: &str| {
        let got = got.expect("refused");
        assert!(got.starts_with(want), "{got}");
    };
    says(made(&[], vec![]), "`graphs` is 0");
    says(made(&graphs, vec![0]), "`classes` has length 1");
    says(
        made(&graphs[1..], vec![0; GRAPHS - 1]),
        "`rows of features`",
    );
    let mut empty = graphs.clone();
    empty[2] = Graph::from_edges(0, []).unwrap();
    says(made(&empty, classes()), "`nodes of graph 2`");

    let few = Architecture::convolution(8);
    let mut config = config(few, Pooling::Mean);
    let refused = |config: &GraphClassifierConfig| {
        Trainer::new(config, &TrainingConfig::default(), task(8), Seed::new(3)).unwrap_err()
    };
    config.nodes.classes = 1;
    says(
        Some(refused(&config).to_string()),
        "`class of graph 1` holds the index 1",
    );
    let inferred = AttentionKind::Kernel(EdgeKernel::from(Implicit::default()));
    (config.nodes.classes, config.nodes.architecture) = (2, Architecture::attention(inferred));
    assert!(matches!(refused(&config), Error::Unsupported { .. }));
}
