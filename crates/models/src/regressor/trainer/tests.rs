//! Tests of the trainer.

use super::*;
use crate::training::TrainingConfig;
use bochner_attention::{
    IkanDirect, Mikan, Performer, Preset, Primal, Softmax, Variant, mechanism::Redraw,
};
use dfdx::tensor::SampleTensor;
use ndarray::Array2;
use rand::RngCore;
use std::collections::BTreeMap;

pub(crate) fn task() -> Task {
    let x = Array2::from_shape_fn((24, 2), |(i, n)| ((i * (n + 3)) % 24) as f32 / 12.0 - 1.0);
    let y = x.column(0).mapv(|x| (2.0 * x).sin() * 0.7);
    Task::new(x, y, (0..24).filter(|i| i % 4 != 0).collect()).unwrap()
}

pub(crate) fn variants() -> Vec<Variant> {
    let of = |preset| [ikan(preset), mikan(preset)];
    let kernels = [Preset::Paper, Preset::Released].into_iter().flat_map(of);
    [Softmax::default().into()]
        .into_iter()
        .chain(kernels)
        .collect()
}

fn ikan(preset: Preset) -> Variant {
    let default = IkanDirect::default();
    let points = 8;
    IkanDirect {
        points,
        preset,
        ..default
    }
    .into()
}

fn mikan(preset: Preset) -> Variant {
    let default = Mikan::default();
    let points = 8;
    Mikan {
        points,
        preset,
        ..default
    }
    .into()
}

pub(crate) fn trainer(variant: Variant) -> Trainer {
    learning(variant, 0.0, task())
}

pub(crate) fn trainer_with_dropout(variant: Variant) -> Trainer {
    learning(variant, 0.2, task())
}

pub(crate) fn learning(variant: Variant, dropout: f64, task: Task) -> Trainer {
    let config = RegressorConfig {
        width: 16,
        hidden: 16,
        heads: 2,
        dropout,
        ..RegressorConfig::new(2, variant)
    };
    Trainer::new(&config, &TrainingConfig::regression(), task, Seed::new(5)).unwrap()
}

#[test]
fn every_variant_learns() {
    for variant in variants() {
        let mut trainer = trainer(variant.clone());
        let first = trainer.epoch().unwrap().error;
        let last = (0..80).map(|_| trainer.epoch().unwrap()).last().unwrap();
        assert!(
            last.error < 0.5 * first,
            "{variant:?}: {first} to {}",
            last.error
        );
        assert!(last.loss.is_finite() && last.gradient_norm.is_finite());
    }
}

#[test]
fn the_objective_is_the_error_of_the_training_rows_and_a_share_of_the_penalty() {
    for variant in variants() {
        let mut trainer = trainer(variant);
        let (predicted, task) = (trainer.predict().unwrap(), task());
        let report = trainer.epoch().unwrap();
        if trainer.model.is_deterministic() {
            let off = |&i: &usize| f64::from(predicted[i] - task.target()[i]);
            let squares: f64 = task.train().iter().map(|i| off(i).powi(2)).sum();
            assert!((report.error - squares / 18.0).abs() < 1e-5 * report.error);
        }
        let want = report.error + report.penalty / 18.0;
        assert!((report.loss - want).abs() < 1e-5 * want);
    }
}

/// The paper's loss is added once, whatever the number of rows.
#[test]
fn a_loss_of_the_batch_is_not_divided() {
    let mut trainer = trainer(Primal::default().into());
    let report = trainer.epoch().unwrap();
    let want = report.error + report.penalty;
    assert!(report.penalty > 0.0 && (report.loss - want).abs() < 1e-5 * want);
}

/// The rate is obeyed in the feed-forward part and on the branches; there are no weights to drop.
#[test]
fn a_mechanism_without_weights_trains_with_dropout() {
    let mut plain = trainer(Primal::default().into());
    let mut dropped = trainer_with_dropout(Primal::default().into());
    let [plain, dropped] = [&mut plain, &mut dropped].map(|trainer| trainer.epoch().unwrap());
    assert_ne!(plain.error, dropped.error);
}

/// Features drawn for some steps are redrawn after them, and a resumed run has the draw of its step.
#[test]
fn features_are_drawn_anew_in_training() {
    let performer = Performer {
        points: 8,
        redraw: Redraw::Every { steps: 2 },
        ..Performer::default()
    };
    let start = || trainer(performer.clone().into());
    let (mut training, first) = (start(), start().model);
    // The weights by the draw of a run, with the parameters of its start.
    let weights = |training: &Trainer| {
        let mut layer = training.model.layer.clone();
        layer.attention.maps.clone_from(&first.layer.attention.maps);
        let x = Cpu::seed_from_u64(1).sample_normal_like(&(1, 4, 16));
        let (mask, pass) = (bochner_attention::Mask::none(), training.evaluation());
        let shown = layer.attention.inspect(x.clone(), x, &mask, pass);
        shown.unwrap().weights
    };
    let mut all = vec![weights(&training)];
    for _ in 0..4 {
        training.epoch().unwrap();
        all.push(weights(&training));
    }
    let changes: Vec<bool> = all.windows(2).map(|pair| pair[0] != pair[1]).collect();
    assert_eq!(changes, [false, true, false, true]);

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("regressor.safetensors");
    training.save(&path).unwrap();
    let mut resumed = start();
    resumed.resume(&path).unwrap();
    assert_eq!(resumed.predict().unwrap(), training.predict().unwrap());
    assert_eq!(resumed.epoch().unwrap(), training.epoch().unwrap());
}

#[test]
fn a_step_drops_out_at_its_rate_and_by_the_stream_of_the_run() {
    let mut trainer = trainer_with_dropout(Softmax::default().into());
    let mut stream = Seed::new(5).stream("training");
    for _ in 0..2 {
        let seed = Seed::new(stream.next_u64());
        let pass = Pass::Training { seed, dropout: 0.2 };
        let rows = trainer.task.rows().unwrap();
        let predicted = trainer.model.apply::<NoneTape>(rows, pass).unwrap();
        let want = trainer
            .task
            .squared_error(predicted.output)
            .unwrap()
            .array();
        assert_eq!(trainer.epoch().unwrap().error, f64::from(want));
    }
}

#[test]
fn gradients_are_clipped() {
    let moved = |clip_norm| {
        let training = TrainingConfig {
            clip_norm: Some(clip_norm),
            ..TrainingConfig::regression()
        };
        let config = RegressorConfig::new(2, Softmax::default().into());
        let mut trainer = Trainer::new(&config, &training, task(), Seed::new(5)).unwrap();
        let before = trainer.predict().unwrap();
        trainer.epoch().unwrap();
        (trainer.predict().unwrap() - before).mapv(f32::abs).sum()
    };
    // A gradient far below Adam's epsilon hardly moves anything.
    assert!(moved(1e-12) < 0.01 * moved(1000.0));
}

#[test]
fn the_released_preset_draws_anew_in_every_evaluation() {
    for (preset, fixed) in [(Preset::Paper, true), (Preset::Released, false)] {
        let mut trainer = trainer(mikan(preset));
        let before = trainer.evaluation();
        trainer.epoch().unwrap();
        assert_eq!(trainer.evaluation() == before, fixed);
    }
}

#[test]
fn a_resumed_run_ends_with_the_same_bits() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.safetensors");
    for variant in variants() {
        let mut whole = trainer(variant.clone());
        let mut stopped = trainer(variant.clone());
        for epoch in 0..12 {
            whole.epoch().unwrap();
            if epoch < 5 {
                stopped.epoch().unwrap();
            }
        }
        stopped.save(&path).unwrap();
        let mut resumed = trainer(variant);
        resumed.resume(&path).unwrap();
        assert_eq!(resumed.epochs_done(), 5);
        for _ in 5..12 {
            resumed.epoch().unwrap();
        }
        assert_eq!(whole.predict().unwrap(), resumed.predict().unwrap());
    }
}

#[test]
fn a_checkpoint_of_another_run_is_refused_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.safetensors");
    trainer(Softmax::default().into()).save(&path).unwrap();
    let mut other = trainer(ikan(Preset::Paper));
    let before = other.predict().unwrap();
    assert!(matches!(other.resume(&path), Err(Error::Nn(_))));
    assert_eq!(before, other.predict().unwrap());

    let (x, y) = (task().inputs().clone(), task().target() + 1.0);
    let moved = Task::new(x, y, task().train().to_vec()).unwrap();
    let error = learning(Softmax::default().into(), 0.0, moved).resume(&path);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("task is \""), "{error}");
}

#[test]
fn variants_share_the_initial_values_of_what_they_share() {
    use bochner_nn::Parameters;
    let values = |variant| {
        let mut all = BTreeMap::new();
        trainer(variant)
            .model()
            .for_each("", &mut |name, parameter| {
                let mut values = Vec::new();
                parameter.read_into(&mut values);
                all.insert(name.to_string(), values);
            });
        all.remove("attention.kernel");
        all
    };
    let of_softmax = values(Softmax::default().into());
    assert_eq!(of_softmax, values(mikan(Preset::Paper)));
    assert!(of_softmax.contains_key("attention.query.weight"));
}

#[test]
fn every_variant_can_be_looked_into() {
    for variant in variants() {
        let seen = trainer(variant.clone()).inspect().unwrap();
        let rows = seen.weights.sum_axis(ndarray::Axis(3));
        assert!(
            rows.iter().all(|sum| (sum - 1.0).abs() < 1e-5),
            "{variant:?}"
        );
        assert_eq!(seen.points.is_some(), variant.card().points.is_some());
    }
}

#[test]
fn the_released_preset_differs() {
    for of in [0, 1] {
        let run = |variant: Variant| {
            let mut trainer = trainer(variant);
            for _ in 0..3 {
                trainer.epoch().unwrap();
            }
            trainer.predict().unwrap()
        };
        let all = variants();
        assert_ne!(run(all[1 + of].clone()), run(all[3 + of].clone()));
    }
}

/// Another order of the rows changes predictions if and only if the attention sees it.
#[test]
fn an_order_of_rows_is_seen_or_not() {
    let order: Vec<usize> = (0..24).map(|i| (7 * i + 3) % 24).collect();
    let cat = bochner_attention::Cat::default().into();
    for (variant, sees_order) in [(Softmax::default().into(), false), (cat, true)] {
        let mut trainer = trainer(variant);
        trainer.epoch().unwrap();
        let usual = trainer.predict().unwrap();
        let moved = (trainer.predict_in_order(&order).unwrap() - &usual)
            .iter()
            .fold(0.0_f32, |most, x| most.max(x.abs()));
        assert_eq!(moved > 1e-4, sees_order, "{moved}");
        let same: Vec<usize> = (0..24).collect();
        assert_eq!(trainer.predict_in_order(&same).unwrap(), usual);
    }
}

#[test]
fn an_order_has_each_row_once() {
    let trainer = trainer(Softmax::default().into());
    let mut twice: Vec<usize> = (0..24).collect();
    twice[3] = 4;
    let mut beyond: Vec<usize> = (0..24).collect();
    beyond[3] = 24;
    for order in [&[][..], &[0, 1], &twice, &beyond] {
        let refused = trainer.predict_in_order(order);
        assert!(
            matches!(refused, Err(crate::Error::Argument(_))),
            "{order:?}"
        );
    }
}
