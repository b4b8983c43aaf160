//! The regressor reads all rows at once, and predicts them by what its mechanism draws.

mod new_rows;

use crate::common::{message, parameters, place};
use bochner_attention::card::Draws;
use bochner_attention::mechanism::Redraw;
use bochner_attention::{
    Cat, IkanDirect, Mikan, Pass, Performer, Preset, Primal, Softmax, Variant,
};
use bochner_models::regressor::{LookAhead, RegressorConfig, Task, Trainer, TrainingConfig};
use bochner_numerics::Seed;
use bochner_numerics::operations::count;
use dfdx::prelude::{Cpu, TensorFromVec};
use ndarray::{Array2, Axis, arr1, arr2};
use rand::RngCore;

/// 24 rows of two inputs.
fn rows() -> Array2<f32> {
    Array2::from_shape_fn((24, 2), |(i, n)| ((i * (n + 3)) % 24) as f32 / 12.0 - 1.0)
}

/// Some first rows, of which some are learned from.
fn task_of(rows: Array2<f32>, train: Vec<usize>) -> Task {
    let target = rows.column(0).mapv(|x| (2.0 * x).sin() * 0.7);
    Task::new(rows, target, train).unwrap()
}

fn task() -> Task {
    task_of(rows(), (0..24).filter(|i| i % 4 != 0).collect())
}

fn softmax() -> Variant {
    Softmax::default().into()
}

fn variants() -> Vec<Variant> {
    let points = 8;
    let of = |preset| -> [Variant; 2] {
        let (ikan, mikan) = (IkanDirect::default(), Mikan::default());
        let ikan = IkanDirect {
            points,
            preset,
            ..ikan
        };
        let mikan = Mikan {
            points,
            preset,
            ..mikan
        };
        [ikan.into(), mikan.into()]
    };
    let kernels = [Preset::Paper, Preset::Released].into_iter().flat_map(of);
    [softmax()].into_iter().chain(kernels).collect()
}

fn config(attention: Variant, dropout: f64) -> RegressorConfig {
    RegressorConfig {
        width: 16,
        hidden: 16,
        heads: 2,
        dropout,
        ..RegressorConfig::new(2, attention)
    }
}

fn trainer_of(attention: Variant, dropout: f64) -> Trainer {
    let (config, training) = (config(attention, dropout), TrainingConfig::regression());
    Trainer::new(&config, &training, task(), Seed::new(5)).unwrap()
}

fn trainer(attention: Variant) -> Trainer {
    trainer_of(attention, 0.0)
}

/// A trainer whose steps change no parameter.
fn standing_still(attention: Variant) -> Trainer {
    let training = TrainingConfig {
        learning_rate: f64::MIN_POSITIVE,
        ..TrainingConfig::regression()
    };
    Trainer::new(&config(attention, 0.0), &training, task(), Seed::new(5)).unwrap()
}

#[test]
fn every_variant_learns_and_can_be_looked_into() {
    for variant in variants() {
        let mut trainer = trainer(variant.clone());
        let seen = trainer.inspect().unwrap();
        let sums = seen.weights.sum_axis(Axis(3));
        let is_one = |sum: &f32| (sum - 1.0).abs() < 1e-5;
        assert!(sums.iter().all(is_one), "{variant:?}");
        assert_eq!(seen.points.is_some(), variant.card().points.is_some());

        let first = trainer.epoch().unwrap().error;
        let last = (0..80).map(|_| trainer.epoch().unwrap()).last().unwrap();
        assert!(last.error < 0.5 * first, "{variant:?}: {first}, {last:?}");
        assert!(last.loss.is_finite() && last.gradient_norm.is_finite());
    }
}

#[test]
fn the_objective_is_the_error_of_the_training_rows_and_a_share_of_the_penalty() {
    for variant in variants() {
        let mut trainer = trainer(variant.clone());
        let (predicted, task) = (trainer.predict().unwrap(), task());
        let report = trainer.epoch().unwrap();
        if variant.card().draws == Draws::Nothing {
            let off = |&i: &usize| f64::from(predicted[i] - task.target()[i]);
            let squares: f64 = task.train().iter().map(|i| off(i).powi(2)).sum();
            assert!((report.error - squares / 18.0).abs() < 1e-5 * report.error);
        }
        let want = report.error + report.penalty / 18.0;
        assert!((report.loss - want).abs() < 1e-5 * want);
    }
}

/// The paper's loss is added once, whatever the number of rows. Its mechanism has no weights to drop; the rate is obeyed in
/// the feed-forward part and on the branches.
#[test]
fn a_loss_of_the_batch_is_not_divided_and_a_mechanism_without_weights_trains_with_dropout() {
    let [plain, dropped] = [0.0, 0.2].map(|dropout| {
        let report = trainer_of(Primal::default().into(), dropout).epoch();
        report.unwrap()
    });
    let want = plain.error + plain.penalty;
    assert!(plain.penalty > 0.0 && (plain.loss - want).abs() < 1e-5 * want);
    assert_ne!(plain.error, dropped.error);
}

/// Features drawn for some steps are redrawn after them, and a resumed run has the draw of its step.
#[test]
fn features_are_drawn_again_in_training() {
    let performer = Performer {
        points: 8,
        redraw: Redraw::Every { steps: 2 },
        ..Performer::default()
    };
    let start = || standing_still(performer.clone().into());
    let mut training = start();
    let weights = |training: &Trainer| training.inspect().unwrap().weights;
    let mut all = vec![weights(&training)];
    for _ in 0..4 {
        training.epoch().unwrap();
        all.push(weights(&training));
    }
    let changes: Vec<bool> = all.windows(2).map(|pair| pair[0] != pair[1]).collect();
    assert_eq!(changes, [false, true, false, true]);

    let (_directory, path) = place();
    training.save(&path).unwrap();
    let mut resumed = start();
    resumed.resume(&path).unwrap();
    assert_eq!(resumed.predict().unwrap(), training.predict().unwrap());
    assert_eq!(resumed.epoch().unwrap(), training.epoch().unwrap());
}

#[test]
fn a_step_drops_out_at_its_rate_and_by_the_stream_of_the_run() {
    let mut trainer = trainer_of(softmax(), 0.2);
    let mut stream = Seed::new(5).stream("training");
    let flat: Vec<f32> = rows().into_iter().collect();
    for _ in 0..2 {
        let seed = Seed::new(stream.next_u64());
        let pass = Pass::Training { seed, dropout: 0.2 };
        let rows = Cpu::default().tensor_from_vec(flat.clone(), (1, 24, 2));
        let predicted = trainer.model().apply(rows, pass).unwrap().output.as_vec();
        let task = trainer.task();
        let off = |&i: &usize| f64::from(predicted[i] - task.target()[i]).powi(2);
        let want = task.train().iter().map(off).sum::<f64>() / 18.0;
        let got = trainer.epoch().unwrap().error;
        assert!((got - want).abs() < 1e-6 * want, "{got} {want}");
    }
}

#[test]
fn gradients_are_clipped() {
    let moved = |clip_norm| {
        let training = TrainingConfig {
            clip_norm: Some(clip_norm),
            ..TrainingConfig::regression()
        };
        let config = config(softmax(), 0.0);
        let mut trainer = Trainer::new(&config, &training, task(), Seed::new(5)).unwrap();
        let before = trainer.predict().unwrap();
        trainer.epoch().unwrap();
        (trainer.predict().unwrap() - before).mapv(f32::abs).sum()
    };
    // A gradient far below Adam's epsilon hardly moves anything.
    assert!(moved(1e-12) < 0.01 * moved(1000.0));
}

#[test]
fn the_released_preset_draws_anew_in_every_evaluation_and_differs() {
    let [_, paper, mikan, released, other_mikan] = <[_; 5]>::try_from(variants()).unwrap();
    for (variant, is_fixed) in [(mikan.clone(), true), (other_mikan.clone(), false)] {
        let mut trainer = standing_still(variant);
        let before = trainer.predict().unwrap();
        trainer.epoch().unwrap();
        assert_eq!(trainer.predict().unwrap() == before, is_fixed);
    }
    for pair in [[paper, released], [mikan, other_mikan]] {
        let [one, other] = pair.map(|variant| {
            let mut trainer = trainer(variant);
            trainer.epoch().unwrap().error
        });
        assert_ne!(one, other);
    }
}

#[test]
fn variants_share_the_initial_values_of_what_they_share() {
    let values = |variant| {
        let mut all = parameters(trainer(variant).model());
        all.retain(|(name, _)| name != "attention.kernel");
        all
    };
    let of_softmax = values(softmax());
    assert_eq!(of_softmax, values(variants()[2].clone()));
    assert!(
        of_softmax
            .iter()
            .any(|(name, _)| name == "attention.query.weight")
    );
}

/// Another order of the rows changes predictions if and only if the attention sees it.
#[test]
fn an_order_of_rows_is_seen_or_not() {
    let order: Vec<usize> = (0..24).map(|i| (7 * i + 3) % 24).collect();
    for (variant, sees_order) in [(softmax(), false), (Cat::default().into(), true)] {
        let mut trainer = trainer(variant);
        trainer.epoch().unwrap();
        let usual = trainer.predict().unwrap();
        let moved = trainer.predict_in_order(&order).unwrap() - &usual;
        let moved = moved.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
        assert_eq!(moved > 1e-4, sees_order, "{moved}");
        let same: Vec<usize> = (0..24).collect();
        assert_eq!(trainer.predict_in_order(&same).unwrap(), usual);
        let [mut twice, mut beyond] = [same.clone(), same];
        (twice[3], beyond[3]) = (4, 24);
        for order in [&[][..], &[0, 1], &twice, &beyond] {
            assert!(message(trainer.predict_in_order(order)).starts_with("`order"));
        }
    }
}

/// The pass of a prediction is that of the next epoch, unless something is drawn: no bit depends on it, and a prediction
/// behind an epoch costs nothing.
#[test]
fn looking_ahead_changes_no_bit_and_spares_the_predictions() {
    let all = variants().into_iter();
    for (variant, dropout) in all.flat_map(|variant| [(variant.clone(), 0.0), (variant, 0.2)]) {
        let mut plain = trainer_of(variant.clone(), dropout);
        let mut ahead = LookAhead::new(trainer_of(variant.clone(), dropout));
        let draws = dropout > 0.0 || variant.card().draws != Draws::Nothing;
        for _ in 0..3 {
            assert_eq!(ahead.epoch().unwrap(), plain.epoch().unwrap());
            let (found, cost) = count(|| ahead.predict().unwrap());
            assert_eq!(found, plain.predict().unwrap());
            assert_eq!(cost.multiply_adds > 0, draws, "{variant:?}");
        }
    }
}

#[test]
fn a_resumed_trainer_has_not_looked_ahead() {
    let (_directory, path) = place();
    for variant in variants() {
        let mut ahead = LookAhead::new(trainer(variant));
        ahead.epoch().unwrap();
        ahead.trainer().save(&path).unwrap();
        let (want, report) = (ahead.predict().unwrap(), ahead.epoch().unwrap());
        ahead.epoch().unwrap();
        ahead.resume(&path).unwrap();
        assert_eq!(ahead.predict().unwrap(), want);
        assert_eq!(ahead.epoch().unwrap(), report);
    }
}

#[test]
fn a_trainer_can_be_sent_to_another_thread() {
    fn can_be_sent<T: Send + Sync>() {}
    can_be_sent::<Trainer>();
}

#[test]
fn misfits_are_refused() {
    let task = |inputs: &Array2<f32>, target: &[f32], train: &[usize]| {
        Task::new(inputs.clone(), arr1(target), train.to_vec())
    };
    let inputs = arr2(&[[1.0], [2.0]]);
    assert!(task(&inputs, &[1.0, 2.0], &[1]).is_ok());
    let infinite = arr2(&[[1.0, f32::INFINITY]]);
    for (inputs, target, train, named) in [
        (&inputs, &[1.0][..], &[1][..], "`target` has length 1"),
        (&inputs, &[1.0, 2.0], &[], "`training rows` is 0"),
        (
            &inputs,
            &[1.0, 2.0],
            &[2],
            "`training rows` holds the index 2",
        ),
        (&inputs, &[1.0, f32::NAN], &[0], "`target` is NaN at [1]"),
        (&infinite, &[1.0], &[0], "`inputs` is inf at [0, 1]"),
    ] {
        let said = message(task(inputs, target, train));
        assert!(said.starts_with(named), "{said}");
    }
}
