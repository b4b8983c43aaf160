//! A classifier of sentences is saved and loaded as one file: it gives the logits of the trainer, whatever its mechanism
//! draws, and a file of something else is refused.

use crate::common::{ikan, layer, mikan, place};
use crate::rational_quadratic::rational_quadratic;
use bochner_attention::{Pass, Performer, Softmax, Variant, mechanism::Redraw};
use bochner_models::Error;
use bochner_models::classifier::{
    SentenceClassifier, Task, TextClassifier, TextClassifierConfig, Trainer,
};
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_models::regressor::{self, RegressorConfig};
use bochner_models::training::TrainingConfig;
use bochner_nn::{Checkpoint, Parameters, Progress};
use bochner_numerics::Seed;
use bochner_text::{BatchConfig, Marks, Vocabulary};
use dfdx::tensor::{Cpu, TensorFromVec};
use ndarray::{arr2, array};
use serde_json::json;
use std::fs;
use std::path::Path;

const WORDS: usize = 7;
const LONGEST: usize = 12;

fn vocabulary(words: usize) -> Vocabulary {
    let words = (0..words).map(|i| format!("w{i}"));
    Vocabulary::from_words(words, Marks::None).unwrap()
}

/// Sentences of up to eight words, some without any.
fn sentences() -> Vec<Vec<String>> {
    let word = |i: usize, t: usize| format!("w{}", (i * 5 + t * t + i / 7) % WORDS);
    let sentence = |i: usize| (0..i % 9).map(|t| word(i, t)).collect();
    (0..40).map(sentence).collect()
}

fn numbers() -> Vec<Vec<usize>> {
    vocabulary(WORDS).encode_all("test", &sentences()).unwrap()
}

fn classes() -> Vec<usize> {
    let has = |sentence: &Vec<usize>| usize::from(sentence.contains(&4));
    numbers().iter().map(has).collect()
}

fn batches() -> BatchConfig {
    BatchConfig {
        sentences: Some(8),
        ..BatchConfig::default()
    }
}

fn softmax() -> Variant {
    Softmax::default().into()
}

fn config(width: usize, attention: Variant) -> TextClassifierConfig {
    let layer = EncoderLayerConfig {
        width,
        ..layer(attention, NormPlacement::Pre, 0.1)
    };
    let words = vocabulary(WORDS).len();
    TextClassifierConfig::transformer(words, 2, LONGEST, EncoderConfig::new(2, layer))
}

fn trained(attention: Variant) -> Trainer {
    let task = Task::new(numbers(), classes(), batches()).unwrap();
    let training = TrainingConfig {
        learning_rate: 0.02,
        ..TrainingConfig::default()
    };
    let config = config(8, attention);
    let mut trainer = Trainer::new(&config, &training, task, Seed::new(3)).unwrap();
    for _ in 0..3 {
        trainer.epoch().unwrap();
    }
    trainer
}

fn message<T>(refused: Result<T, Error>) -> String {
    refused.map(drop).unwrap_err().to_string()
}

#[test]
fn what_is_loaded_gives_the_logits_of_the_trainer() {
    // The frequencies of the last step are not those of the first.
    let performer = Performer {
        redraw: Redraw::Every { steps: 3 },
        ..Performer::default()
    };
    let custom = rational_quadratic();
    for attention in [softmax(), ikan(), mikan(), performer.into(), custom] {
        let trainer = trained(attention);
        let (_directory, path) = place();
        let classifier = trainer.sentence_classifier(vocabulary(WORDS)).unwrap();
        classifier.save(&path).unwrap();
        let loaded = SentenceClassifier::load(&path).unwrap();
        assert_eq!(loaded.vocabulary(), &vocabulary(WORDS));
        assert_eq!(loaded.model().config(), trainer.model().config());
        assert_eq!(loaded.seed(), trainer.evaluation_seed());

        let expected = trainer.predict(&numbers()).unwrap();
        assert_eq!(loaded.logits(&sentences()).unwrap(), expected);
        let seed = trainer.evaluation_seed();
        let pass = Pass::Evaluation { seed };
        let found = loaded
            .model()
            .predict(&numbers(), loaded.batches(), pass)
            .unwrap();
        assert_eq!(found, expected);
        // What is seen of one sentence is what its logits came from.
        let (model, words) = (loaded.model(), &numbers()[8..9]);
        let pass = Pass::Evaluation { seed }.nth(0);
        let tensor = Cpu::default().tensor_from_vec(words[0].clone(), (1, words[0].len()));
        let logits = model.apply(tensor, None, pass).unwrap().output.as_vec();
        let found = loaded.logits(&sentences()[8..9]).unwrap();
        assert_eq!(found.into_raw_vec_and_offset().0, logits);
        let seen = [
            loaded.inspect(&sentences()[8..9]).unwrap(),
            model.inspect_sentences(words, pass).unwrap(),
        ];
        let [found, expected] = seen.map(|layers| layers[1].weights.clone());
        assert_eq!(found, expected);

        let again = path.with_extension("again");
        loaded.save(&again).unwrap();
        assert_eq!(fs::read(again).unwrap(), fs::read(path).unwrap());
    }
}

/// Two equal sentences, each in a batch of its own.
#[test]
fn every_batch_draws_from_a_seed_of_its_own() {
    let trainer = trained(mikan());
    let pass = Pass::Evaluation { seed: Seed::new(7) };
    let one = BatchConfig {
        sentences: Some(1),
        ..BatchConfig::default()
    };
    let words = &numbers()[8];
    let found = trainer
        .model()
        .predict(&[words.clone(), words.clone()], &one, pass);
    let found = found.unwrap();
    assert_ne!(found.row(0), found.row(1));
    for (row, i) in found.rows().into_iter().zip(0..) {
        let tensor = Cpu::default().tensor_from_vec(words.clone(), (1, words.len()));
        let alone = trainer.model().apply(tensor, None, pass.nth(i)).unwrap();
        assert_eq!(row.to_vec(), alone.output.as_vec());
    }
}

#[test]
fn probabilities_and_classes_are_those_of_the_logits() {
    let trainer = trained(softmax());
    let classifier = trainer.sentence_classifier(vocabulary(WORDS)).unwrap();
    let logits = classifier.logits(&sentences()).unwrap();
    let probabilities = classifier.probabilities(&sentences()).unwrap();
    let found = classifier.classes(&sentences()).unwrap();
    assert_eq!((logits.dim(), found.len()), ((40, 2), 40));
    for ((logits, probabilities), &class) in logits
        .rows()
        .into_iter()
        .zip(probabilities.rows())
        .zip(&found)
    {
        let difference = f64::from(logits[1] - logits[0]);
        let second = 1.0 / (1.0 + (-difference).exp());
        assert!((f64::from(probabilities[1]) - second).abs() < 1e-6);
        assert!((f64::from(probabilities.sum()) - 1.0).abs() < 1e-6);
        assert_eq!(class, usize::from(difference > 0.0));
    }
    let pairs = found.iter().zip(classes());
    let wrong = pairs.filter(|&(&found, class)| found != class).count();
    let assessed = trainer.assess(&numbers(), &classes()).unwrap();
    assert_eq!(assessed.error, wrong as f64 / 40.0);
}

/// The logits of a sentence without words are the bias of the last map.
#[test]
fn the_class_is_that_of_the_largest_logit_of_many() {
    let config = TextClassifierConfig {
        classes: 4,
        ..config(8, softmax())
    };
    let mut model = TextClassifier::try_new(&Cpu::default(), &config, Seed::new(1)).unwrap();
    for (logits, class) in [
        ([3.0, 2.0, -1.0, 1.0], 0),
        ([-1.0, 4.0, 2.0, 3.0], 1),
        ([1.0, 2.0, 4.0, 3.0], 2),
        ([3.0, 2.0, 1.0, 4.0], 3),
        ([-2.0, -1.0, -1.0, -1.0], 1),
    ] {
        model.for_each_mut("", &mut |name, parameter| {
            if name == "head.bias" {
                parameter.write(&logits);
            }
        });
        let classifier = SentenceClassifier::new(model.clone(), vocabulary(WORDS), Seed::new(1));
        let (classifier, empty) = (classifier.unwrap(), [Vec::<&str>::new()]);
        assert_eq!(classifier.logits(&empty).unwrap(), arr2(&[logits]));
        assert_eq!(classifier.classes(&empty).unwrap(), [class]);
        let unnamed = classifier.labels(&empty).unwrap_err();
        assert!(matches!(unnamed, Error::Unsupported { .. }), "{unnamed}");
    }
}

/// Parameters may be finite, and too large for the pass.
#[test]
fn logits_that_are_not_finite_are_an_error() {
    let mut model = trained(softmax()).model().clone();
    model.for_each_mut("", &mut |_, parameter| {
        parameter.write(&vec![3e38; parameter.len()]);
    });
    let classifier = SentenceClassifier::new(model, vocabulary(WORDS), Seed::new(1)).unwrap();
    let said = message(classifier.classes(&sentences()));
    assert!(said.contains("must not exceed"), "{said}");
}

#[test]
fn words_may_be_unknown_and_sentences_empty_but_not_too_long() {
    let trainer = trained(softmax());
    let classifier = trainer.sentence_classifier(vocabulary(WORDS)).unwrap();
    let found = classifier.logits(&[vec!["never", "w3"], vec![]]).unwrap();
    let numbers = [vec![Vocabulary::UNKNOWN, 5], vec![]];
    assert_eq!(found, trainer.predict(&numbers).unwrap());
    let long = classifier.classes(&[vec![], vec!["w1"; LONGEST + 1]]);
    assert!(matches!(
        long,
        Err(Error::SentenceTooLong { sentence: 1, .. })
    ));
    assert!(matches!(
        classifier.inspect::<&str>(&[]),
        Err(Error::Argument(_))
    ));
    let nothing = BatchConfig {
        tokens: 0,
        ..BatchConfig::default()
    };
    assert!(matches!(
        classifier.with_batches(nothing),
        Err(Error::Text(_))
    ));
}

/// Writes a file as `SentenceClassifier::save` does, of parts that need not fit.
fn write(path: &Path, config: &TextClassifierConfig, model: &TextClassifier<f32>, words: usize) {
    let extra = json!({
        "vocabulary": vocabulary(words), "batches": batches(), "seed": Seed::new(1),
    });
    let progress = Progress {
        extra,
        ..Progress::default()
    };
    let description = json!({ "sentence-classifier": config }).to_string();
    let checkpoint = Checkpoint::of(description, model).with_progress(progress);
    checkpoint.write(path).unwrap();
}

#[test]
fn a_vocabulary_or_parameters_of_another_model_are_refused() {
    let of_width = |width| {
        TextClassifier::try_new(&Cpu::default(), &config(width, softmax()), Seed::new(1)).unwrap()
    };
    let (own, model): (_, TextClassifier<f32>) = (config(8, softmax()), of_width(8));
    let other = "`the vocabulary` has length 8, but must have length 9";
    let made = SentenceClassifier::new(model.clone(), vocabulary(6), Seed::new(1));
    assert!(message(made).starts_with(other));

    let (_directory, path) = place();
    write(&path, &own, &model, WORDS);
    assert!(SentenceClassifier::load(&path).is_ok());
    write(&path, &own, &model, 6);
    assert!(message(SentenceClassifier::load(&path)).starts_with(other));
    write(&path, &own, &of_width(16), WORDS);
    let shape = message(SentenceClassifier::load(&path));
    assert!(shape.contains("in the checkpoint and"), "{shape}");
}

#[test]
fn as_many_words_of_another_run_are_refused_where_the_settings_know_theirs() {
    let settings = TextClassifierConfig {
        vocabulary: Some(vocabulary(WORDS).fingerprint()),
        ..config(8, softmax())
    };
    let made = |words: Vocabulary| {
        let model = TextClassifier::try_new(&Cpu::default(), &settings, Seed::new(1)).unwrap();
        SentenceClassifier::new(model, words, Seed::new(1))
    };
    let others = (0..WORDS).map(|i| format!("v{i}"));
    let others = Vocabulary::from_words(others, Marks::None).unwrap();
    let (_directory, path) = place();
    made(vocabulary(WORDS)).unwrap().save(&path).unwrap();
    assert_eq!(
        SentenceClassifier::load(&path).unwrap().model().config(),
        &settings
    );
    let refused = message(made(others));
    assert!(
        refused.contains("another run; load the vocabulary"),
        "{refused}"
    );
}

#[test]
fn a_training_run_and_something_else_are_refused_by_what_they_are() {
    let (_directory, path) = place();
    let mut trainer = trained(softmax());
    trainer.save(&path).unwrap();
    let error = SentenceClassifier::load(&path).unwrap_err();
    assert!(matches!(error, Error::TrainingRun { .. }));
    let run = error.to_string();
    for part in [
        "is the checkpoint of a training run, not a classifier of sentences",
        "`Trainer::resume`",
        "`Trainer::sentence_classifier`",
    ] {
        assert!(run.contains(part), "{run}");
    }

    // A run of another model is no run of a classifier.
    let task = regressor::Task::new(array![[0.0], [1.0]], array![0.0, 1.0], vec![0, 1]).unwrap();
    let config = RegressorConfig::new(1, softmax());
    let training = TrainingConfig::regression();
    let mut regressor = regressor::Trainer::new(&config, &training, task, Seed::new(1)).unwrap();
    regressor.epoch().unwrap();
    regressor.save(&path).unwrap();
    let error = SentenceClassifier::load(&path).unwrap_err();
    assert!(matches!(error, Error::OtherContents { .. }), "{error}");

    let other = Checkpoint::of("model", trainer.model());
    other.write(&path).unwrap();
    let error = SentenceClassifier::load(&path).unwrap_err();
    assert!(matches!(error, Error::OtherContents { .. }));
    let other = error.to_string();
    assert!(
        other.contains("which `SentenceClassifier::save` writes"),
        "{other}"
    );

    // A run does not go on from a classifier, which has no optimiser.
    let classifier = trainer.sentence_classifier(vocabulary(WORDS)).unwrap();
    classifier.save(&path).unwrap();
    assert!(matches!(
        trainer.resume(&path),
        Err(Error::IncompleteCheckpoint { .. })
    ));
}
