//! A training that starts from a trained model has its parameters and nothing else of its run; a checkpoint of another run
//! says that there is such a start where the model is the same.

use crate::common::{layer, place, values};
use bochner_attention::Softmax;
use bochner_models::Error;
use bochner_models::classifier::{Task, TextClassifierConfig, Trainer};
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_models::training::TrainingConfig;
use bochner_numerics::Seed;
use bochner_text::BatchConfig;

/// Sentences of one to six words, and whether the first word is in them again.
fn task(shift: usize) -> Task {
    let word = |i: usize, t: usize| 2 + (i * 3 + t * t + shift) % 7;
    let sentence = |i: usize| (0..1 + i % 6).map(|t| word(i, t)).collect();
    let sentences: Vec<Vec<usize>> = (0..30).map(sentence).collect();
    let again = |words: &Vec<usize>| usize::from(words[1..].contains(&words[0]));
    let classes = sentences.iter().map(again).collect();
    Task::new(sentences, classes, BatchConfig::default()).unwrap()
}

fn config(width: usize, dropout: f64) -> TextClassifierConfig {
    let layer = EncoderLayerConfig {
        width,
        ..layer(Softmax::default().into(), NormPlacement::Pre, dropout)
    };
    TextClassifierConfig::transformer(9, 2, 8, EncoderConfig::new(1, layer))
}

fn training(learning_rate: f64) -> TrainingConfig {
    TrainingConfig {
        learning_rate,
        ..TrainingConfig::default()
    }
}

fn cold(config: &TextClassifierConfig, learning_rate: f64) -> Trainer {
    Trainer::new(config, &training(learning_rate), task(0), Seed::new(3)).unwrap()
}

#[test]
fn a_warm_start_has_the_parameters_and_nothing_else_of_the_run() {
    let rate = 0.02;
    let mut trained = cold(&config(8, 0.1), rate);
    for _ in 0..9 {
        trained.epoch().unwrap();
    }
    // Other sentences, another seed, and no dropout.
    let config = config(8, 0.0);
    let warm = || {
        let model = trained.model();
        Trainer::from_model(model, &config, &training(rate), task(1), Seed::new(4)).unwrap()
    };
    let mut first = warm();
    let counts = (first.epochs_done(), first.steps_done(), first.best());
    assert_eq!(counts, (0, 0, None));
    let before = values(trained.model());
    assert_eq!(values(first.model()), before);
    assert_eq!(first.model().config(), &config);

    // All sentences are one batch. The first step of a fresh Adam moves each number that has a gradient by the learning
    // rate; one with moments of earlier steps moves them by all sorts of lengths.
    first.epoch().unwrap();
    let after = values(first.model());
    let moves = before
        .iter()
        .zip(&after)
        .map(|(x, y)| f64::from((x - y).abs()));
    let moved: Vec<f64> = moves.filter(|&length| length > 0.01 * rate).collect();
    let whole = moved.iter().filter(|&&length| length > 0.99 * rate).count();
    assert!(
        !moved.is_empty() && whole as f64 > 0.9 * moved.len() as f64,
        "{whole} of {}",
        moved.len()
    );

    let mut second = warm();
    second.epoch().unwrap();
    assert_eq!(values(second.model()), after);
}

/// With the parameters of an untrained model, the seed is all that tells a warm start from a cold one.
#[test]
fn a_warm_start_draws_from_the_seed_that_it_is_given() {
    let (config, rate) = (config(8, 0.1), 0.02);
    let mut cold = cold(&config, rate);
    let model = cold.model().clone();
    let [mut same, mut other] = [3, 4].map(|seed| {
        let seed = Seed::new(seed);
        Trainer::from_model(&model, &config, &training(rate), task(0), seed).unwrap()
    });
    assert_eq!(same.evaluation_seed(), cold.evaluation_seed());
    assert_ne!(other.evaluation_seed(), cold.evaluation_seed());
    let expected = cold.epoch().unwrap();
    assert_eq!(same.epoch().unwrap(), expected);
    assert_ne!(other.epoch().unwrap(), expected);
}

#[test]
fn a_model_of_another_shape_is_refused() {
    let wide = cold(&config(16, 0.1), 0.02);
    let warm = Trainer::from_model(
        wide.model(),
        &config(8, 0.1),
        &training(0.02),
        task(0),
        Seed::new(3),
    );
    let message = warm.map(drop).unwrap_err().to_string();
    assert!(
        message.contains("embedding.weight has shape [9, 16]"),
        "{message}"
    );
}

#[test]
fn a_checkpoint_of_another_run_says_how_to_start_from_its_model() {
    let (_directory, path) = place();
    cold(&config(8, 0.1), 0.02).save(&path).unwrap();
    let mut faster = cold(&config(8, 0.1), 0.05);
    let error = faster.resume(&path).unwrap_err();
    let message = error.to_string();
    assert!(matches!(error, Error::AnotherRun(_)), "{message}");
    for part in ["training.learning_rate is 0.02", "`Trainer::from_model`"] {
        assert!(message.contains(part), "{message}");
    }
    let mut other = cold(&config(8, 0.2), 0.02);
    let error = other.resume(&path).unwrap_err();
    let message = error.to_string();
    assert!(matches!(error, Error::Nn(_)), "{message}");
    assert!(!message.contains("from_model"), "{message}");
}
