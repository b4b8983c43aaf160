//! Classifiers of nodes learn with every architecture, from all nodes or from samples of their neighbours.

mod samples;

use crate::common::{message, parameters};
use crate::tiny::{ring_parts, rings};
use bochner_graph::{
    AttentionKind, EdgeKernel, FanOut, Graph, GraphAttention, Residual, SparseFeatures,
};
use bochner_models::node_classifier::{
    Architecture, AttentionLayers, Dropout, NodeClassifier, NodeClassifierConfig, Sampling, Task,
    Trainer, TrainingConfig,
};
use bochner_numerics::Seed;
use bochner_ops::{Activation, Mode};
use bochner_spectral::{Copula, Direct, Implicit, Posterior};
use dfdx::prelude::*;
use ndarray::{Array2, Axis, arr2, array, s};
use std::num::NonZeroUsize;

const ALL: [&str; 4] = ["classic", "direct", "mikan", "convolution"];

fn architecture(name: &str) -> Architecture {
    let points = 8;
    let (direct, implicit) = (Direct::default(), Implicit::default());
    let implicit = Implicit { points, ..implicit };
    let kernel = |kernel: EdgeKernel| AttentionKind::Kernel(kernel);
    let kind = match name {
        "classic" => AttentionKind::Classic,
        "dynamic" => AttentionKind::Dynamic,
        "direct" => kernel(Direct { points, ..direct }.into()),
        "unconditional" => {
            let alone = Implicit {
                posterior: Posterior::Unconditional,
                copula: Copula::Independent,
                ..implicit
            };
            kernel(EdgeKernel::from(alone).with_p(1.5).unwrap())
        }
        "mikan" => kernel(implicit.into()),
        _ => return Architecture::convolution(8),
    };
    Architecture::Attention(AttentionLayers {
        heads: 2,
        width: 4,
        output_heads: 2,
        ..AttentionLayers::new(kind)
    })
}

pub(crate) fn config(name: &str, dropout: f64) -> NodeClassifierConfig {
    NodeClassifierConfig {
        inputs: 6,
        classes: 2,
        architecture: architecture(name),
        dropout: match name {
            "convolution" => Dropout::of_inputs(dropout),
            _ => Dropout::everywhere(dropout),
        },
    }
}

/// A trainer of a task with these rates of dropout, L2 and learning.
fn learning(name: &str, [dropout, l2, learning_rate]: [f64; 3], task: Task) -> Trainer {
    let training = TrainingConfig {
        learning_rate,
        l2,
        ..TrainingConfig::default()
    };
    Trainer::new(&config(name, dropout), &training, task, Seed::new(5)).unwrap()
}

fn number(n: usize) -> NonZeroUsize {
    NonZeroUsize::new(n).unwrap()
}

fn sampling(batch: usize, fan_outs: Vec<FanOut>) -> Sampling {
    let batch = number(batch);
    Sampling { batch, fan_outs }
}

/// The nodes with labels.
fn labelled() -> Vec<usize> {
    (0..24).filter(|node| *node != 3).collect()
}

fn close(a: &Array2<f32>, b: &Array2<f32>) -> bool {
    a.dim() == b.dim() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5)
}

#[test]
fn every_architecture_learns() {
    // One seed says little: with so few nodes and so much dropout a last digit can decide.
    const SEEDS: u64 = 4;
    let training = TrainingConfig {
        learning_rate: 0.02,
        l2: 5e-4,
        ..TrainingConfig::default()
    };
    for name in ALL {
        let (mut error, mut cross_entropy) = (0.0, 0.0);
        for seed in (1..=SEEDS).map(Seed::new) {
            let mut trainer = Trainer::new(&config(name, 0.3), &training, rings(24), seed).unwrap();
            for _ in 0..100 {
                trainer.epoch().unwrap();
            }
            let logits = trainer.predict().unwrap();
            let seen = trainer.task().assess(logits.view(), &labelled()).unwrap();
            error += seen.error / SEEDS as f64;
            cross_entropy += seen.cross_entropy / SEEDS as f64;
        }
        assert!(error < 0.3, "{name}: {error}");
        assert!(cross_entropy < 0.95 * 2f64.ln(), "{name}: {cross_entropy}");
    }
}

/// The norm is that of all attention, and of the first convolution.
#[test]
fn the_objective_is_the_sum_of_its_parts() {
    for name in ALL {
        let mut trainer = learning(name, [0.0, 0.1, 0.02], rings(24));
        let is_penalised = |of: &str| name != "convolution" || of.starts_with("first.");
        let all = parameters(trainer.model()).into_iter();
        let penalised = all.filter(|(of, _)| is_penalised(of));
        let squares = penalised.flat_map(|(_, values)| values.into_iter());
        let l2 = 0.05 * squares.map(|x| f64::from(x).powi(2)).sum::<f64>();

        let report = trainer.epoch().unwrap();
        assert!((report.l2 - l2).abs() < 1e-9 * l2, "{name}: {report:?}");
        let parts = report.error + report.penalty / 4.0 + l2;
        let off = (report.loss - parts).abs();
        assert!(off < 1e-5 * parts, "{name}: {report:?}");
        assert_eq!(report.penalty > 0.0, name == "mikan");
        assert!(report.squared_error > 0.0);
    }
}

#[test]
fn the_penalties_of_both_layers_count() {
    let trainer = learning("mikan", [0.0, 0.0, 0.02], rings(24));
    let (model, task, mode) = (trainer.model(), trainer.task(), Mode::Evaluation);
    let (graph, features) = (task.graph(), task.features());
    let [first, second] = model.attention().unwrap() else {
        panic!("two layers")
    };
    let hidden = first.apply_features(graph, features, NoneTape, mode);
    let hidden = hidden.unwrap();
    let last = second.apply(graph, hidden.output, mode).unwrap();
    let parts = [hidden.penalty.array(), last.penalty.array()];
    let both = model.apply(graph, features, NoneTape, mode).unwrap();
    assert!(parts.iter().all(|&part| part > 0.0));
    assert_eq!(both.penalty.array(), parts[0] + parts[1]);
}

#[test]
fn all_layers_drop_out_and_only_the_hidden_ones_have_an_activation() {
    let dropout = Dropout {
        inputs: 0.1,
        values: 0.2,
        coefficients: 0.3,
    };
    let config = NodeClassifierConfig {
        dropout,
        ..deep("classic")
    };
    let model = NodeClassifier::<f32>::try_new(&Cpu::default(), &config, Seed::new(1)).unwrap();
    let layers = model.attention().unwrap().iter();
    let layers = layers.map(GraphAttention::config);
    for config in layers.clone() {
        let got = Dropout {
            inputs: config.input_dropout,
            values: config.value_dropout,
            coefficients: config.coefficient_dropout,
        };
        assert_eq!(got, dropout);
    }
    let activations: Vec<_> = layers.map(|config| config.activation).collect();
    let (elu, none) = (Activation::Elu, Activation::Identity);
    assert_eq!(activations, [elu, elu, none]);
}

#[test]
fn kinds_share_the_initial_values_of_what_they_share() {
    let weight = |name| {
        let trainer = learning(name, [0.0, 0.0, 0.02], rings(24));
        let mut all = parameters(trainer.model()).into_iter();
        all.find(|(of, _)| of == "first.weight").unwrap()
    };
    assert_eq!(weight("classic"), weight("mikan"));
}

/// Three layers with residuals that read one attribute of the edges.
fn deep(name: &str) -> NodeClassifierConfig {
    let mut config = config(name, 0.0);
    match &mut config.architecture {
        Architecture::Attention(own) => {
            (own.layers, own.residual, own.edge_inputs) = (3, Residual::Added, 1);
        }
        Architecture::Convolution { layers, .. } => *layers = 3,
    }
    config
}

/// The task of [`deep`], whose edges between the classes have another attribute than those within.
fn attributed(name: &str) -> Task {
    let task = rings(24);
    if name == "convolution" {
        return task;
    }
    let edges = task.graph().edges().into_iter();
    let between = edges.map(|(j, i)| f32::from(u8::from(j / 12 != i / 12)));
    let attributes = Array2::from_shape_vec((task.graph().edge_count(), 1), between.collect());
    task.with_attributes(attributes.unwrap()).unwrap()
}

#[test]
fn deep_networks_learn_in_samples_and_in_blocks_too() {
    let training = TrainingConfig {
        learning_rate: 0.02,
        ..TrainingConfig::default()
    };
    for name in ["classic", "dynamic", "direct", "convolution"] {
        let start = |task| Trainer::new(&deep(name), &training, task, Seed::new(3)).unwrap();
        let mut trainer = start(attributed(name));
        let before = trainer.epoch().unwrap().error;
        for _ in 0..60 {
            trainer.epoch().unwrap();
        }
        let logits = trainer.predict().unwrap();
        let seen = trainer.task().assess(logits.view(), &labelled()).unwrap();
        let learnt = seen.cross_entropy < 0.8 * before;
        assert!(learnt, "{name}: {seen:?} after {before}");
        let Some(layers) = trainer.model().attention() else {
            continue;
        };
        assert_eq!(layers.len(), 3);
        let (graph, features) = (trainer.task().attributed(), trainer.task().features());
        for block in [1, 5, 24, 100] {
            let model = trainer.model();
            let found = model.infer_in_blocks(graph, features, number(block));
            let off = (found.unwrap() - &logits).mapv(f32::abs);
            assert!(off.iter().all(|&off| off < 1e-4), "{name}, {block}");
        }

        // A whole sample has the loss of the whole graph.
        let whole = attributed(name).sampled(sampling(4, vec![FanOut::All; 3]));
        let sampled = start(whole).epoch().unwrap();
        assert!((sampled.error - before).abs() < 1e-5, "{name}");
    }
}

/// A training node that is named twice counts twice, with all nodes and with samples that hold both copies.
#[test]
fn training_nodes_named_twice_count_twice() {
    let (graph, features, labels) = ring_parts(24);
    let task = Task::new(graph, features, labels, 2, vec![0, 0, 12, 0, 13]).unwrap();
    let sampled = task.clone().sampled(sampling(5, vec![FanOut::All; 2]));
    let [mut whole, mut sampled] =
        [task, sampled].map(|task| learning("classic", [0.0, 0.0, 0.02], task));
    let logits = whole.predict().unwrap();
    let of = |node| {
        let seen = whole.task().assess(logits.view(), &[node]);
        seen.unwrap().cross_entropy
    };
    let want = (3.0 * of(0) + of(12) + of(13)) / 5.0;
    for trainer in [&mut whole, &mut sampled] {
        let report = trainer.epoch().unwrap();
        for got in [report.error, report.loss] {
            assert!((got - want).abs() < 1e-6, "{got} and {want}");
        }
    }
}

#[test]
fn settings_that_the_task_does_not_fit_are_named() {
    let training = TrainingConfig::default();
    let refused = |config: &NodeClassifierConfig, task, named: &str| {
        let said = message(Trainer::new(config, &training, task, Seed::new(3)));
        assert!(said.starts_with(named), "{said}");
    };
    let usual = |inputs, classes, dropout| NodeClassifierConfig {
        inputs,
        classes,
        ..config("classic", dropout)
    };
    refused(
        &usual(5, 2, 0.0),
        rings(24),
        "`a node's features` has length",
    );
    refused(
        &usual(6, 3, 0.0),
        rings(24),
        "`classes of the task` has length",
    );
    for rate in [1.0, f64::NAN] {
        refused(&usual(6, 2, rate), rings(24), "`dropout.inputs` is");
    }
    let none = "`attributes of an edge` has length 0";
    refused(&deep("classic"), rings(24), none);
    let one = "`attributes of an edge` has length 1";
    refused(&config("classic", 0.0), attributed("classic"), one);
    let two = attributed("classic").sampled(sampling(1, vec![FanOut::All; 2]));
    refused(&deep("classic"), two, "`fan_outs` has length 2");
}

/// A graph of three nodes, the last of which has no label.
fn three() -> (Graph, SparseFeatures<f32>, Vec<Option<usize>>) {
    let graph = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
    let features = SparseFeatures::from_dense(arr2(&[[1.0], [2.0], [0.0]]).view()).unwrap();
    (graph, features, vec![Some(0), Some(1), None])
}

#[test]
fn misfits_are_refused() {
    let (graph, features, labels) = three();
    let task = |graph: &Graph, labels: &[Option<usize>], classes, train: &[usize]| {
        let (graph, labels, train) = (graph.clone(), labels.to_vec(), train.to_vec());
        Task::new(graph, features.clone(), labels, classes, train)
    };
    assert!(task(&graph, &labels, 2, &[0, 1]).is_ok());
    let lonely = Graph::from_edges(3, []).unwrap();
    let bipartite = Graph::bipartite(3, 2, [(0, 0)]).unwrap();
    let more = Graph::from_edges(4, [(0, 1)]).unwrap();
    let unknown = "`label of node 1` holds the index 1";
    for (graph, labels, classes, train, named) in [
        (&graph, &labels[..], 1, &[0][..], unknown),
        (&graph, &labels, 2, &[0, 2], "node 2 has no label"),
        (&graph, &labels, 2, &[3], "`nodes` holds the index 3"),
        (&graph, &labels, 2, &[], "`training nodes` is 0"),
        (&graph, &labels[..2], 2, &[0], "`labels` has length 2"),
        (&lonely, &labels, 2, &[0], "`edges` is 0"),
        (&bipartite, &labels, 2, &[0], "`sources of the graph`"),
        (&more, &labels, 2, &[0], "`rows of features`"),
    ] {
        let said = message(task(graph, labels, classes, train));
        assert!(said.starts_with(named), "{said}");
    }
}

#[test]
fn an_assessment_worked_out_by_hand() {
    let (graph, features, _) = three();
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
    assert_eq!([sure.error, sure.cross_entropy, sure.brier], [0.0; 3]);
    // A count divided once: to the bit, where the sum of shares is 0.4960000000000004.
    let many: Vec<usize> = (0..500).map(|i| usize::from(i < 248)).collect();
    assert_eq!(task.assess(logits.view(), &many).unwrap().error, 0.496);
    assert!(task.assess(logits.view(), &[]).is_err());
    assert!(task.assess(logits.slice(s![..2, ..]), &[0]).is_err());
}
