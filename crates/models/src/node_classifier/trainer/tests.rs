//! Node classifiers in training.

use super::super::task::tests::rings;
use super::super::{Architecture, AttentionLayers, Dropout, Sampling};
use super::*;
use crate::training::TrainingConfig;
use bochner_graph::{AttentionKind, EdgeKernel, FanOut, GraphAttention, Residual};
use bochner_numerics::ArgumentError;
use bochner_ops::Activation;
use bochner_spectral::{Copula, Direct, Implicit, Posterior};
use dfdx::tensor::NoneTape;

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

pub(crate) fn trainer_with(name: &str, dropout: f64, l2: f64) -> Trainer {
    learning(name, [dropout, l2, 0.02], rings(24))
}

/// A trainer of a task with these rates of dropout, L2 and learning.
pub(crate) fn learning(name: &str, rates: [f64; 3], task: Task) -> Trainer {
    seeded(name, rates, task, 5)
}

fn seeded(name: &str, [dropout, l2, rate]: [f64; 3], task: Task, seed: u64) -> Trainer {
    let training = TrainingConfig {
        learning_rate: rate,
        l2,
        ..TrainingConfig::default()
    };
    Trainer::new(&config(name, dropout), &training, task, Seed::new(seed)).unwrap()
}

fn trainer(name: &str) -> Trainer {
    trainer_with(name, 0.3, 5e-4)
}

#[test]
fn every_architecture_learns() {
    // One seed says little: with so few nodes and so much dropout a last digit can decide.
    const SEEDS: u64 = 8;
    let others: Vec<usize> = (0..24).filter(|node| *node != 3).collect();
    for name in ALL {
        let (mut error, mut cross_entropy) = (0.0, 0.0);
        for seed in 1..=SEEDS {
            let mut trainer = seeded(name, [0.3, 5e-4, 0.02], rings(24), seed);
            for _ in 0..200 {
                trainer.epoch().unwrap();
            }
            let logits = trainer.predict().unwrap();
            let seen = trainer.task().assess(logits.view(), &others).unwrap();
            error += seen.error / SEEDS as f64;
            cross_entropy += seen.cross_entropy / SEEDS as f64;
        }
        assert!(error < 0.3, "{name}: {error}");
        assert!(cross_entropy < 0.95 * 2f64.ln(), "{name}: {cross_entropy}");
    }
}

#[test]
fn a_resumed_run_ends_with_the_same_bits() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.safetensors");
    for name in ALL {
        let (mut whole, mut stopped) = (trainer(name), trainer(name));
        for epoch in 0..12 {
            whole.epoch().unwrap();
            if epoch < 5 {
                stopped.epoch().unwrap();
            }
        }
        stopped.save(&path).unwrap();
        let mut resumed = trainer(name);
        resumed.resume(&path).unwrap();
        assert_eq!(resumed.steps_done(), 5);
        for _ in 5..12 {
            resumed.epoch().unwrap();
        }
        assert_eq!(whole.predict().unwrap(), resumed.predict().unwrap());
    }
    let mut other = trainer("classic");
    let before = other.predict().unwrap();
    assert!(matches!(other.resume(&path), Err(Error::Nn(_))));
    assert_eq!(before, other.predict().unwrap());
}

#[test]
fn a_checkpoint_of_another_task_or_seed_is_refused_and_the_difference_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.safetensors");
    let (config, training) = (config("classic", 0.0), TrainingConfig::nodes());
    let trainer =
        |nodes, seed| Trainer::new(&config, &training, rings(nodes), Seed::new(seed)).unwrap();
    trainer(24, 1).save(&path).unwrap();
    trainer(24, 1).resume(&path).unwrap();
    for (nodes, seed, named) in [(26, 1, "task is \""), (24, 2, "seed is 1, here it is 2;")] {
        let error = trainer(nodes, seed).resume(&path).unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    for name in ALL {
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            pool.build().unwrap().install(|| {
                let mut trainer = trainer(name);
                for _ in 0..6 {
                    trainer.epoch().unwrap();
                }
                trainer.predict().unwrap()
            })
        };
        assert_eq!(run(1), run(3), "{name}");
    }
}

#[test]
fn the_objective_is_the_sum_of_its_parts() {
    for name in ALL {
        let mut trainer = trainer_with(name, 0.0, 0.1);
        let report = trainer.epoch().unwrap();
        let parts = report.error + report.penalty / 4.0 + report.l2;
        assert!(
            (report.loss - parts).abs() < 1e-5 * parts,
            "{name}: {report:?}"
        );
        assert_eq!(report.penalty > 0.0, name == "mikan");
        assert!(report.l2 > 0.0 && report.squared_error > 0.0);
    }
}

#[test]
fn the_norm_is_that_of_all_attention_and_of_the_first_convolution() {
    for name in ALL {
        let mut trainer = trainer_with(name, 0.0, 0.1);
        let (mut values, mut squares) = (Vec::new(), 0.0);
        trainer.model().for_each("", &mut |of, parameter| {
            if name != "convolution" || of.starts_with("first.") {
                parameter.read_into(&mut values);
                squares += values.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>();
            }
        });
        let want = 0.05 * squares;
        let got = trainer.epoch().unwrap().l2;
        assert!((got - want).abs() < 1e-9 * want, "{name}: {got} and {want}");
    }
}

#[test]
fn a_strong_norm_draws_all_that_is_penalised_to_zero() {
    let after = |l2| {
        let mut trainer = trainer_with("classic", 0.0, l2);
        for _ in 0..100 {
            trainer.epoch().unwrap();
        }
        trainer
            .predict()
            .unwrap()
            .iter()
            .map(|x| x.abs())
            .fold(0.0, f32::max)
    };
    assert!(after(100.0) < 0.05 && after(0.0) > 1.0);
}

#[test]
fn what_does_not_fit_the_task_is_refused() {
    let config = |inputs, classes, dropout| NodeClassifierConfig {
        inputs,
        classes,
        ..config("classic", dropout)
    };
    let start = |config, l2| {
        let training = TrainingConfig {
            l2,
            ..TrainingConfig::default()
        };
        Trainer::new(&config, &training, rings(24), Seed::new(5))
    };
    let misfit = |result| matches!(result, Err(Error::Argument(ArgumentError::Shape { .. })));
    assert!(misfit(start(config(5, 2, 0.0), 0.0)) && misfit(start(config(6, 3, 0.0), 0.0)));
    let outside = |result| {
        matches!(
            result,
            Err(Error::Argument(ArgumentError::OutOfRange { .. }))
        )
    };
    assert!(outside(start(config(6, 2, 1.0), 0.0)) && outside(start(config(6, 2, 0.0), -1.0)));
    assert!(outside(start(config(6, 2, f64::NAN), 0.0)));
    assert!(start(config(6, 2, 0.5), 0.0).is_ok());
}

#[test]
fn the_penalties_of_both_layers_count() {
    let trainer = trainer_with("mikan", 0.0, 0.0);
    let (graph, features) = (trainer.task.graph(), trainer.task.features());
    let [first, second] = trainer.model().attention().unwrap() else {
        panic!("two layers")
    };
    let mode = Mode::Evaluation;
    let hidden = first
        .apply_features(graph, features, NoneTape, mode)
        .unwrap();
    let last = second.apply(graph, hidden.output, mode).unwrap();
    let parts = [hidden.penalty.array(), last.penalty.array()];
    let both = trainer
        .model
        .apply(graph, features, NoneTape, mode)
        .unwrap();
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
    let model = NodeClassifier::<f32>::try_new(&Cpu::default(), &config, Seed::new(1));
    let model = model.unwrap();
    let layers = model
        .attention()
        .unwrap()
        .iter()
        .map(GraphAttention::config);
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
    let others: Vec<usize> = (0..24).filter(|node| *node != 3).collect();
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
        let seen = trainer.task().assess(logits.view(), &others).unwrap();
        assert!(
            seen.cross_entropy < 0.8 * before,
            "{name}: {seen:?} after {before}"
        );
        let Some(layers) = trainer.model().attention() else {
            continue;
        };
        assert_eq!(layers.len(), 3);
        let (graph, features) = (trainer.task().attributed(), trainer.task().features());
        let block = std::num::NonZeroUsize::new(5).unwrap();
        let blocks = trainer.model().infer_in_blocks(graph, features, block);
        let off = (blocks.unwrap() - &logits).mapv(f32::abs);
        assert!(off.iter().all(|&off| off < 1e-4), "{name}");

        // A whole sample has the loss of the whole graph.
        let sampling = Sampling {
            batch: std::num::NonZeroUsize::new(4).unwrap(),
            fan_outs: vec![FanOut::All; 3],
        };
        let sampled = start(attributed(name).sampled(sampling)).epoch().unwrap();
        assert!((sampled.error - before).abs() < 1e-5, "{name}");
    }
}

/// The settings fit the task, and convolution has no dropout of attention.
#[test]
fn settings_that_the_task_does_not_fit_are_named() {
    let training = TrainingConfig::default();
    let refused = |config: &NodeClassifierConfig, task| {
        let trainer = Trainer::new(config, &training, task, Seed::new(3));
        trainer.map(|_| ()).unwrap_err().to_string()
    };
    let error = refused(&deep("classic"), rings(24));
    assert!(
        error.starts_with("`attributes of an edge` has length 0"),
        "{error}"
    );
    let error = refused(&config("classic", 0.0), attributed("classic"));
    assert!(
        error.starts_with("`attributes of an edge` has length 1"),
        "{error}"
    );
    let two = Sampling {
        batch: std::num::NonZeroUsize::MIN,
        fan_outs: vec![FanOut::All; 2],
    };
    let error = refused(&deep("classic"), attributed("classic").sampled(two));
    assert!(error.starts_with("`fan_outs` has length 2"), "{error}");
    let dropped = NodeClassifierConfig {
        dropout: Dropout::everywhere(0.5),
        ..config("convolution", 0.0)
    };
    let error = refused(&dropped, rings(24));
    assert!(
        error.starts_with("`dropout.values` is 0.5, but must be 0"),
        "{error}"
    );
    let none = NodeClassifierConfig {
        architecture: Architecture::Convolution {
            hidden: 8,
            layers: 0,
        },
        ..config("convolution", 0.0)
    };
    assert!(refused(&none, rings(24)).starts_with("`layers` is 0"));
}

/// A training node that is named twice counts twice, with all nodes and with samples that hold both copies.
#[test]
fn training_nodes_named_twice_count_twice() {
    let rings = rings(24);
    let labels = rings.labels().to_vec();
    let train = vec![0, 0, 12, 0, 13];
    let (graph, features) = (rings.graph().clone(), rings.features().clone());
    let task = Task::new(graph, features, labels, 2, train).unwrap();
    let sampling = Sampling {
        batch: std::num::NonZeroUsize::new(5).unwrap(),
        fan_outs: vec![FanOut::All; 2],
    };
    let mut whole = learning("classic", [0.0, 0.0, 0.02], task.clone());
    let mut sampled = learning("classic", [0.0, 0.0, 0.02], task.sampled(sampling));
    let logits = whole.predict().unwrap();
    let of = |node| {
        whole
            .task()
            .assess(logits.view(), &[node])
            .unwrap()
            .cross_entropy
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
fn kinds_share_the_initial_values_of_what_they_share() {
    let weight = |name| {
        let mut found = Vec::new();
        trainer(name).model().for_each("", &mut |of, parameter| {
            if of == "first.weight" {
                parameter.read_into(&mut found);
            }
        });
        found
    };
    assert!(!weight("classic").is_empty());
    assert_eq!(weight("classic"), weight("mikan"));
}
