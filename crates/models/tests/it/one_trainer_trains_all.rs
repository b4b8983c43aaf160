//! The trainer: training until a measure stops improving, resumed runs, accumulated gradients, schedules.

mod schedule;
mod several_passes;

use crate::common::{self, ikan, layer, mikan, place};
use bochner_attention::{Mikan, Performer, Softmax, Variant, card::Penalty, mechanism::Redraw};
use bochner_models::Error;
use bochner_models::classifier::{Task, TextClassifierConfig, Trainer};
use bochner_models::encoder::{EncoderConfig, NormPlacement};
use bochner_models::training::{
    Best, Checkpoints, Curves, Decayed, Epoch, FitConfig, Goal, Schedule, TrainingConfig,
};
use bochner_numerics::{ArgumentError, Seed, relative_error};
use bochner_text::BatchConfig;
use std::cell::Cell;
use std::num::NonZeroUsize;

const WORDS: usize = 9;
const LONGEST: usize = 12;

/// Sentences of up to eight words, some without any.
fn sentences() -> Vec<Vec<usize>> {
    let sentence = |i: usize| {
        (0..i % 9)
            .map(|t| 2 + (i * 5 + t * t + i / 7) % 7)
            .collect()
    };
    (0..60).map(sentence).collect()
}

fn classes() -> Vec<usize> {
    let class = |sentence: &Vec<usize>| usize::from(sentence.contains(&4));
    sentences().iter().map(class).collect()
}

fn task(batch: usize) -> Task {
    let batches = BatchConfig {
        sentences: Some(batch),
        ..BatchConfig::default()
    };
    Task::new(sentences(), classes(), batches).unwrap()
}

fn config(attention: Variant, dropout: f64) -> TextClassifierConfig {
    let layer = layer(attention, NormPlacement::Pre, dropout);
    TextClassifierConfig::transformer(WORDS, 2, LONGEST, EncoderConfig::new(2, layer))
}

fn training() -> TrainingConfig {
    TrainingConfig {
        learning_rate: 0.02,
        clip_norm: Some(1.0),
        ..TrainingConfig::default()
    }
}

fn trainer_of(training: &TrainingConfig, batch: usize, dropout: f64) -> Trainer {
    let config = config(Softmax::default().into(), dropout);
    Trainer::new(&config, training, task(batch), Seed::new(3)).unwrap()
}

fn variants() -> [Variant; 3] {
    [Softmax::default().into(), ikan(), mikan()]
}

/// A mechanism whose features are others in the second epoch of eight steps than in the fourth.
fn redrawn() -> Variant {
    let performer = Performer {
        points: 4,
        redraw: Redraw::Every { steps: 12 },
        ..Performer::default()
    };
    performer.into()
}

fn trainer(attention: Variant) -> Trainer {
    let config = config(attention, 0.1);
    Trainer::new(&config, &training(), task(8), Seed::new(3)).unwrap()
}

fn loss(trainer: &Trainer) -> Result<f64, Error> {
    Ok(trainer.assess(&sentences(), &classes())?.cross_entropy)
}

fn logits(trainer: &Trainer) -> Vec<f64> {
    let logits = trainer.predict(&sentences()).unwrap();
    logits.into_iter().map(f64::from).collect()
}

#[test]
fn every_variant_learns_and_the_objective_is_the_sum_of_its_parts() {
    for variant in variants() {
        let mut trainer = trainer(variant.clone());
        let before = loss(&trainer).unwrap();
        let report = trainer.epoch().unwrap();
        let parts = report.error + report.penalty / 60.0;
        assert!((report.loss - parts).abs() < 1e-5 * parts, "{report:?}");
        let adds = variant.card().penalty != Penalty::None;
        assert_eq!(report.penalty > 0.0, adds);
        assert!(report.gradient_norm > 0.0);
        assert_eq!((trainer.epochs_done(), trainer.steps_done()), (1, 8));
        for _ in 0..15 {
            trainer.epoch().unwrap();
        }
        let after = loss(&trainer).unwrap();
        assert!(
            after < 0.6 * before,
            "{}: {before} to {after}",
            variant.name()
        );
    }
}

#[test]
fn a_training_ends_when_its_patience_does_and_keeps_the_best_model() {
    // The measure is best after epoch 3, as good again after epoch 4, and worse ever after.
    let values = [3.0, 2.0, 1.0, 1.0, 2.0, 4.0, 4.0, 4.0, 0.0];
    let mut trainer = trainer(redrawn());
    let measure = |trainer: &Trainer| Ok(values[trainer.epochs_done() - 1]);
    let (mut curves, mut third) = (Curves::default(), Vec::new());
    let mut look = |trainer: &Trainer, epoch: &Epoch| {
        if epoch.number == 3 {
            third = logits(trainer);
        }
        Ok(())
    };
    let fit = FitConfig {
        epochs: 20,
        patience: Some(4),
        goal: Goal::Lowest,
    };
    let best = trainer
        .fit(&fit, measure, &mut [&mut curves, &mut look])
        .unwrap();
    let third_epoch = Best {
        epoch: 3,
        steps: 24,
        value: 1.0,
    };
    assert_eq!((best, trainer.best()), (third_epoch, Some(third_epoch)));
    let measured: Vec<f64> = curves.epochs.iter().map(|epoch| epoch.measured).collect();
    assert_eq!(measured, values[..7]);
    assert_ne!(logits(&trainer), third);
    trainer.use_best();
    assert_eq!(logits(&trainer), third);

    let highest = FitConfig {
        epochs: 6,
        patience: None,
        goal: Goal::Highest,
    };
    let mut trainer = trainer_of(&training(), 8, 0.0);
    assert_eq!(trainer.fit(&highest, measure, &mut []).unwrap().epoch, 6);
}

#[test]
fn a_resumed_training_ends_with_the_same_bits_and_the_same_best_model() {
    let (_directory, path) = place();
    let values = [3.0, 1.0, 2.0, 2.5, 1.5, 2.0, 0.5, 9.0];
    let measure = |trainer: &Trainer| Ok(values[(trainer.epochs_done() - 1) % 8]);
    let fit = |epochs, patience| FitConfig {
        epochs,
        patience: Some(patience),
        goal: Goal::Lowest,
    };
    for variant in [mikan(), redrawn()] {
        for patience in [3, 10] {
            let mut whole = trainer(variant.clone());
            let want = whole.fit(&fit(8, patience), measure, &mut []).unwrap();
            let mut stopped = trainer(variant.clone());
            let mut checkpoints = Checkpoints {
                path: path.clone(),
                every: 4,
            };
            let mut second = Vec::new();
            let mut look = |trainer: &Trainer, epoch: &Epoch| {
                if epoch.number == 2 {
                    second = logits(trainer);
                }
                Ok(())
            };
            let ended = stopped.fit(&fit(4, 10), measure, &mut [&mut checkpoints, &mut look]);
            assert_eq!(ended.unwrap().epoch, 2);
            let mut resumed = trainer(variant.clone());
            resumed.resume(&path).unwrap();
            assert_eq!(resumed.epochs_done(), 4);
            resumed.use_best();
            assert_eq!(logits(&resumed), second, "{}", variant.name());
            resumed.resume(&path).unwrap();
            let got = resumed.fit(&fit(8, patience), measure, &mut []).unwrap();
            assert_eq!(got, want, "{}", variant.name());
            assert_eq!(logits(&resumed), logits(&whole));
            resumed.use_best();
            whole.use_best();
            assert_eq!(logits(&resumed), logits(&whole));

            // A training that goes on from its best model is resumed from there, too.
            whole.save(&path).unwrap();
            resumed = trainer(variant.clone());
            resumed.resume(&path).unwrap();
            assert_eq!(logits(&resumed), logits(&whole), "{}", variant.name());
            whole.epoch().unwrap();
            resumed.epoch().unwrap();
            assert_eq!(logits(&resumed), logits(&whole), "{}", variant.name());
        }
    }
}

#[test]
fn a_checkpoint_of_other_batches_or_settings_is_refused_and_changes_nothing() {
    let (_directory, path) = place();
    trainer_of(&training(), 8, 0.1).save(&path).unwrap();
    let halving = TrainingConfig {
        schedule: Schedule::Halving { every: 10 },
        ..training()
    };
    let in_parts = TrainingConfig {
        parts: NonZeroUsize::new(2).unwrap(),
        ..training()
    };
    // The sentences by the numbers that another vocabulary gives their words.
    for (mut other, named) in [
        (trainer_of(&training(), 9, 0.1), "task is \""),
        (trainer_of(&halving, 8, 0.1), "schedule"),
        (trainer_of(&in_parts, 8, 0.1), "parts"),
        (trainer_of(&training(), 8, 0.2), "dropout"),
    ] {
        let before = logits(&other);
        let error = other.resume(&path).unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
        assert_eq!(logits(&other), before);
    }
    assert!(trainer_of(&training(), 8, 0.1).resume(&path).is_ok());
}

/// The first step differs in the shrinking alone: by the learning rate times the factor times the parameter.
#[test]
fn a_weight_decay_shrinks_weights_and_tables_but_not_biases_and_norms() {
    let parameters = |weight_decay, decayed| {
        let training = TrainingConfig {
            weight_decay,
            decayed,
            ..training()
        };
        let mut trainer = trainer_of(&training, 60, 0.0);
        let before = common::parameters(trainer.model());
        trainer.epoch().unwrap();
        (before, common::parameters(trainer.model()))
    };
    let (before, plain) = parameters(0.0, Decayed::Weights);
    for decayed in [Decayed::Weights, Decayed::All] {
        let (mut shrunk, mut stayed) = (0, 0);
        let (_, after) = parameters(0.5, decayed);
        for (((name, before), (_, plain)), (_, after)) in before.iter().zip(&plain).zip(&after) {
            let is_weight = name.ends_with("weight");
            if decayed == Decayed::Weights && !is_weight {
                assert_eq!(plain, after, "{name}");
                stayed += 1;
                continue;
            }
            for ((x, plain), after) in before.iter().zip(plain).zip(after) {
                let want = plain - 0.02 * 0.5 * x;
                assert!((after - want).abs() < 1e-6, "{name}: {after} {want}");
            }
            shrunk += 1;
        }
        assert!(shrunk > 0 && (stayed > 0) == (decayed == Decayed::Weights));
    }
}

/// With almost all words unknown, the words make almost no difference in training, and all of it in evaluation.
#[test]
fn words_are_dropped_in_training_alone() {
    let of = |rate| {
        let task = task(60).with_word_dropout(rate).unwrap();
        let config = config(Softmax::default().into(), 0.0);
        Trainer::new(&config, &training(), task, Seed::new(3)).unwrap()
    };
    let (mut kept, mut dropped) = (of(0.0), of(0.999));
    assert_eq!(logits(&kept), logits(&dropped));
    let unknown: Vec<Vec<usize>> = sentences().iter().map(|s| vec![1; s.len()]).collect();
    let want = dropped.assess(&unknown, &classes()).unwrap().cross_entropy;
    let got = dropped.epoch().unwrap().error;
    assert!((got - want).abs() < 0.02, "{got} and {want}");
    assert!((kept.epoch().unwrap().error - want).abs() > 0.02);
    for wrong in [-0.1, 1.0, f64::NAN] {
        assert!(task(60).with_word_dropout(wrong).is_err());
    }
}

/// One batch of one sentence, many times, which no step changes.
#[test]
fn other_words_are_dropped_in_every_pass() {
    let training = TrainingConfig {
        learning_rate: f64::MIN_POSITIVE,
        ..training()
    };
    let apart = |rate| {
        let sentences = vec![vec![2, 3, 4, 5, 6]; 20];
        let task = Task::new(sentences, vec![1; 20], BatchConfig::default()).unwrap();
        let task = task.with_word_dropout(rate).unwrap();
        let config = config(Softmax::default().into(), 0.0);
        let mut trainer = Trainer::new(&config, &training, task, Seed::new(3)).unwrap();
        let [one, other] = [(); 2].map(|()| trainer.epoch().unwrap().error);
        (one - other).abs()
    };
    assert!(apart(0.0) < 1e-6 && apart(0.5) > 1e-4);
}

#[test]
fn sentences_are_predicted_in_their_own_order_and_one_may_have_no_words() {
    let mut trainer = trainer(Softmax::default().into());
    trainer.epoch().unwrap();
    let all = trainer.predict(&sentences()).unwrap();
    for i in [0, 9, 8, 31] {
        let alone = trainer.predict(&[sentences()[i].clone()]).unwrap();
        let [a, b] = [alone.row(0), all.row(i)].map(|row| row.mapv(f64::from).to_vec());
        assert!(relative_error(&a, &b) < 1e-5);
    }
    let seen = trainer.inspect(&sentences()[..3]).unwrap();
    assert_eq!((seen.len(), seen[0].weights.dim()), (2, (3, 2, 2, 2)));
}

#[test]
fn what_does_not_fit_is_refused_by_type_before_anything_is_trained() {
    let classes = || vec![0; 2];
    let task =
        |sentences: Vec<Vec<usize>>, classes| Task::new(sentences, classes, BatchConfig::default());
    assert!(matches!(
        task(vec![], vec![]),
        Err(Error::Argument(ArgumentError::Empty { .. }))
    ));
    let one_class = task(vec![vec![1], vec![2]], vec![0]);
    assert!(matches!(
        one_class,
        Err(Error::Argument(ArgumentError::Shape { .. }))
    ));
    assert!(matches!(
        task(vec![vec![1; 5000], vec![]], classes()),
        Err(Error::Text(_))
    ));
    let start = |task: Task, training: &TrainingConfig| {
        let config = config(Softmax::default().into(), 0.0);
        Trainer::new(&config, training, task, Seed::new(1)).map(drop)
    };
    let plain = TrainingConfig::default();
    let unknown = start(task(vec![vec![1], vec![WORDS]], classes()).unwrap(), &plain);
    let message = unknown.unwrap_err().to_string();
    assert!(
        message.starts_with("`sentence 1` holds the index 9"),
        "{message}"
    );
    let third = start(task(vec![vec![1], vec![]], vec![0, 2]).unwrap(), &plain);
    let message = third.unwrap_err().to_string();
    assert!(
        message.starts_with("`class of sentence 1` holds the index 2"),
        "{message}"
    );
    let longer = vec![vec![], vec![1; LONGEST + 1]];
    let long = start(task(longer.clone(), classes()).unwrap(), &plain);
    let trained = trainer(Softmax::default().into());
    for error in [
        long.unwrap_err(),
        trained.predict(&longer).unwrap_err(),
        trained.assess(&longer, &classes()).unwrap_err(),
        trained.inspect(&longer).unwrap_err(),
    ] {
        assert_eq!(
            error.to_string(),
            "sentence 1 has 13 words, but the model's table has 12 positions: cut such sentences to 12, or make the model \
             with `longest` at least 13"
        );
    }
    let wrong = TrainingConfig {
        clip_norm: Some(0.0),
        ..TrainingConfig::default()
    };
    assert!(start(task(vec![vec![1], vec![]], classes()).unwrap(), &wrong).is_err());
}

#[test]
fn a_measure_that_is_no_number_ends_the_training_with_an_error() {
    let mut trainer = trainer(Softmax::default().into());
    let fit = |epochs, patience| FitConfig {
        epochs,
        patience,
        goal: Goal::Lowest,
    };
    assert!(trainer.fit(&fit(0, None), loss, &mut []).is_err());
    assert!(trainer.fit(&fit(3, Some(0)), loss, &mut []).is_err());
    assert_eq!(trainer.epochs_done(), 0);
    let error = trainer.fit(&fit(3, None), |_| Ok(f64::NAN), &mut []);
    assert!(matches!(
        error,
        Err(Error::Argument(ArgumentError::OutOfRange { .. }))
    ));
    // An observer's error ends it, too, and it can go on behind it.
    let calls = Cell::new(0);
    let mut stop = |_: &Trainer, epoch: &Epoch| {
        calls.set(epoch.number);
        loss_of_nothing().map(drop)
    };
    assert!(trainer.fit(&fit(3, None), loss, &mut [&mut stop]).is_err());
    assert_eq!(calls.get(), 2);
    trainer.fit(&fit(3, None), loss, &mut []).unwrap();
    assert_eq!(trainer.epochs_done(), 3);
}

fn loss_of_nothing() -> Result<f64, Error> {
    Err(Error::Unsupported {
        what: "a second epoch",
        instead: "one",
    })
}
