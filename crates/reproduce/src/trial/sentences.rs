//! Classifiers of sentences: a Transformer encoder with any attention, and naive Bayes.

mod bayes;

pub use bayes::BayesSettings;
pub(crate) use bayes::naive_bayes;

use super::{Evaluation, Facts, Findings, Keep, Step, failed};
use crate::mechanisms::mechanism;
use crate::suite::Source;
use crate::{Error, Trial};
use bochner_attention::Variant;
use bochner_datasets::{SentenceData, Split};
use bochner_interpret::{head_diversity, head_spread, kept_queries};
use bochner_models::classifier::{Task, TextClassifier, TextClassifierConfig, Trainer};
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_models::training::TrainingConfig;
use bochner_nn::parameter_count;
use bochner_numerics::Seed;
use bochner_report::{Preset, Settings, Unit};
use bochner_text::{BatchConfig, TokenCounts, Vocabulary, VocabularyConfig, clean_str};
use dfdx::tensor::Cpu;
use ndarray::Axis;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::path::Path;

/// The settings of a classifier of sentences with an encoder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SentenceSettings {
    /// The attention mechanism with all its settings.
    pub attention: Variant,
    /// The norm of its magnitudes; absent where it has no choice.
    pub p: Option<f64>,
    /// Its spectral points R; absent where it has none.
    pub points: Option<usize>,
    /// Encoder layers.
    pub layers: usize,
    /// Width of the model.
    pub width: usize,
    /// Heads of each attention layer.
    pub heads: usize,
    /// Width of the feed-forward layers.
    pub hidden: usize,
    /// The share of inner values that is dropped in training.
    pub dropout: f64,
    /// The share of words that training takes for unknown ones.
    pub word_dropout: f64,
    /// Words of a sentence that are read.
    pub longest: usize,
    /// Sentences in a batch.
    pub batch: usize,
    /// Passes over the training sentences.
    pub epochs: usize,
    /// Adam's step size.
    pub learning_rate: f64,
    /// The factor of half the squared norm of the parameters in the objective.
    pub l2: f64,
    /// Largest norm of a gradient.
    pub clip_norm: f64,
}

impl SentenceSettings {
    /// The settings with another model's attention: its norm, and its spectral points if it has a norm.
    pub(crate) fn of_model(&self, model: &str, p: Option<f64>) -> Settings {
        let points = self.points.unwrap_or_default();
        Settings::of(&Self {
            attention: mechanism(model, Preset::Paper, p, points),
            p,
            points: p.map(|_| points),
            ..self.clone()
        })
    }

    /// What a choice is made among, in words.
    pub(crate) fn brief(&self) -> String {
        format!(
            "width {}, dropout {}, of words {}, {} epochs, rate {}, L2 {}",
            self.width, self.dropout, self.word_dropout, self.epochs, self.learning_rate, self.l2
        )
    }
}

/// A corpus whose sentences are cleaned.
#[derive(Debug)]
pub(crate) struct Corpus {
    words: Vec<Vec<String>>,
    labels: Vec<usize>,
    classes: usize,
    splits: Vec<Split>,
    /// The sentence whose weights are kept, where models are looked at.
    looked_at: Option<usize>,
}

/// The measure of how much heads differ: the mean Jensen-Shannon divergence between the rows of two heads.
pub const DIVERSITY: &str = "diversity";

/// How much heads differ, in another measure: the standard deviation of a weight over the heads, summed over the words.
pub const SPREAD: &str = "spread";

impl Corpus {
    /// Cleans the sentences of a set.
    pub(crate) fn of(data: &SentenceData) -> Self {
        let rows = || data.sentences.iter();
        Self {
            words: rows().map(|row| clean_str(&row.text)).collect(),
            labels: rows().map(|row| row.label).collect(),
            classes: data.set.classes(),
            splits: data.splits.clone(),
            looked_at: None,
        }
    }

    /// The corpus, whose models are looked at: the heads over all test sentences, and the weights on one sentence where
    /// it is among them.
    pub(crate) fn looked_at(self, row: usize) -> Self {
        let looked_at = Some(row);
        Self { looked_at, ..self }
    }

    fn split(&self, unit: &Unit) -> Result<&Split, Error> {
        let split = self.splits.get(unit.split);
        split.ok_or_else(|| failed(unit, &"there is no such split"))
    }

    fn labels(&self, rows: &[usize]) -> Vec<usize> {
        rows.iter().map(|&row| self.labels[row]).collect()
    }

    fn facts(&self, split: &Split, parameters: usize) -> Facts {
        Facts {
            parameters,
            train_rows: split.train.len(),
            validation_rows: split.validation.len(),
            test_rows: split.test.len(),
        }
    }

    /// The share of rows whose class is found.
    fn accuracy(&self, rows: &[usize], found: &[usize]) -> f64 {
        let right = rows
            .iter()
            .zip(found)
            .filter(|&(&row, &found)| self.labels[row] == found);
        right.count() as f64 / rows.len() as f64
    }
}

impl Source for Corpus {
    fn start<'a>(&'a self, unit: &Unit) -> Result<Box<dyn Trial + 'a>, Error> {
        match &*unit.variant {
            BayesSettings::MODEL => naive_bayes(unit, self),
            _ => start(unit, self),
        }
    }
}

/// Sets up the training of a classifier with an encoder.
pub(crate) fn start<'a>(unit: &Unit, corpus: &'a Corpus) -> Result<Box<dyn Trial + 'a>, Error> {
    let settings: SentenceSettings = crate::trial::read_settings(unit)?;
    let split = corpus.split(unit)?;
    let classifier = Classifier::new(unit.clone(), settings, corpus, split);
    Ok(Box::new(classifier.map_err(|error| failed(unit, &*error))?))
}

/// Any library's error.
type Said = Box<dyn std::error::Error>;

struct Classifier<'a> {
    unit: Unit,
    longest: usize,
    corpus: &'a Corpus,
    split: &'a Split,
    /// The numbers of the words of all rows.
    sentences: Vec<Vec<usize>>,
    trainer: Trainer,
}

impl<'a> Classifier<'a> {
    fn new(
        unit: Unit,
        settings: SentenceSettings,
        corpus: &'a Corpus,
        split: &'a Split,
    ) -> Result<Self, Said> {
        let train = split.train.iter().flat_map(|&row| &corpus.words[row]);
        let train: TokenCounts = train.collect();
        let vocabulary = Vocabulary::from_counts(&train, &VocabularyConfig::default())?;
        let numbers = |words: &Vec<String>| {
            let mut numbers = vocabulary.encode(words);
            numbers.truncate(settings.longest);
            if numbers.is_empty() {
                // A sentence without any word left after cleaning has one that nobody knows.
                numbers.push(Vocabulary::UNKNOWN);
            }
            numbers
        };
        let sentences: Vec<Vec<usize>> = corpus.words.iter().map(numbers).collect();
        let batches = BatchConfig {
            tokens: settings.batch * settings.longest,
            sentences: Some(settings.batch),
            ..BatchConfig::default()
        };
        let chosen = select(&sentences, &split.train);
        let task = Task::new(chosen, corpus.labels(&split.train), batches)?;
        let training = TrainingConfig {
            learning_rate: settings.learning_rate,
            clip_norm: Some(settings.clip_norm),
            l2: settings.l2,
            ..TrainingConfig::default()
        };
        Ok(Self {
            trainer: Trainer::new(
                &config(&settings, vocabulary.len(), corpus.classes),
                &training,
                task.with_word_dropout(settings.word_dropout)?,
                Seed::new(unit.seed),
            )?,
            longest: settings.longest,
            unit,
            corpus,
            split,
            sentences,
        })
    }

    fn failed(&self, error: &dyn Display) -> Error {
        failed(&self.unit, error)
    }

    /// The share of rows whose class is found.
    fn accuracy(&self, rows: &[usize]) -> Result<f64, Error> {
        let (sentences, labels) = (select(&self.sentences, rows), self.corpus.labels(rows));
        let seen = self.trainer.assess(&sentences, &labels);
        Ok(1.0 - seen.map_err(|error| self.failed(&error))?.error)
    }

    /// How much the heads differ over all test sentences, and their weights on one of them.
    fn look(&self, row: usize) -> Result<Findings, Said> {
        let test = select(&self.sentences, &self.split.test);
        let (mut diversity, mut spread) = (0.0, 0.0);
        for sentences in test.chunks(LOOKED_AT) {
            let weights = self.trainer.inspect(sentences)?.swap_remove(0).weights;
            let lengths: Vec<usize> = sentences.iter().map(Vec::len).collect();
            let queries = kept_queries(&lengths, weights.dim().2)?;
            diversity += head_diversity(weights.view(), queries.view())?.sum();
            spread += head_spread(weights.view(), queries.view())?.sum();
        }
        let each = 1.0 / test.len() as f64;
        let measures = [(DIVERSITY, each * diversity), (SPREAD, each * spread)];
        let findings = Findings::of(measures);
        if !self.split.test.contains(&row) {
            return Ok(findings);
        }
        let one = select(&self.sentences, &[row]);
        let weights = self.trainer.inspect(&one)?.swap_remove(0).weights;
        let heads = weights.index_axis(Axis(0), 0);
        let heads = heads.outer_iter();
        let heads: Vec<Vec<f32>> = heads.map(|head| head.iter().copied().collect()).collect();
        let words = &self.corpus.words[row];
        Ok(findings
            .with("weights", &heads)
            .with("words", &words[..words.len().min(self.longest)]))
    }
}

/// Sentences whose weights are looked at together.
const LOOKED_AT: usize = 32;

fn select(sentences: &[Vec<usize>], rows: &[usize]) -> Vec<Vec<usize>> {
    rows.iter().map(|&row| sentences[row].clone()).collect()
}

fn config(settings: &SentenceSettings, words: usize, classes: usize) -> TextClassifierConfig {
    let layer = EncoderLayerConfig {
        width: settings.width,
        heads: settings.heads,
        hidden: settings.hidden,
        attention: settings.attention.clone(),
        dropout: settings.dropout,
        norm: NormPlacement::Pre,
        ..Default::default()
    };
    let encoder = EncoderConfig {
        layers: settings.layers,
        layer,
    };
    TextClassifierConfig::transformer(words, classes, settings.longest, encoder)
}

/// How many numbers a classifier with these settings trains, for so many words and classes.
///
/// # Errors
/// Settings that no model can have.
pub(crate) fn parameters(
    settings: &SentenceSettings,
    words: usize,
    classes: usize,
) -> Result<usize, Error> {
    let config = config(settings, words, classes);
    let model: TextClassifier<f32> =
        TextClassifier::try_new(&Cpu::default(), &config, Seed::new(0))?;
    Ok(parameter_count(&model))
}

impl Trial for Classifier<'_> {
    fn facts(&self) -> Facts {
        self.corpus
            .facts(self.split, self.trainer.parameter_count())
    }

    fn epoch(&mut self) -> Result<Step, Error> {
        let report = self.trainer.epoch();
        let report = report.map_err(|error| self.failed(&error))?;
        Ok(Step {
            loss: report.loss,
            mse: report.squared_error,
        })
    }

    fn evaluate(&self) -> Result<Evaluation, Error> {
        let validation = &self.split.validation;
        let validated = !validation.is_empty();
        Ok(Evaluation {
            validation: validated.then(|| self.accuracy(validation)).transpose()?,
            test: self.accuracy(&self.split.test)?,
            ..Evaluation::default()
        })
    }

    fn save(&self, path: &Path) -> Result<(), Error> {
        let saved = self.trainer.save(path);
        saved.map_err(|error| Error::checkpoint(path, &error))
    }

    fn resume(&mut self, path: &Path) -> Result<(), Error> {
        Error::unless_verified(path, self.trainer.resume(path))
    }

    fn epochs_done(&self) -> usize {
        self.trainer.epochs_done()
    }

    fn keeps(&self) -> Keep {
        match self.corpus.looked_at {
            Some(_) => Keep::UntilLookedAt,
            None => Keep::Nothing,
        }
    }

    fn findings(&self) -> Result<Findings, Error> {
        let looked = self.corpus.looked_at.map(|row| self.look(row));
        let looked = looked.transpose().map_err(|error| self.failed(&*error))?;
        Ok(looked.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
