//! Classifiers of sentences: a Transformer encoder with any attention, and naive Bayes.

mod bayes;
pub(crate) mod corpora;

pub use bayes::BayesSettings;
use bayes::naive_bayes;

use super::model::{AnyError, Training};
use super::{Evaluation, Findings, Moment, read_settings, sizes, split_of};
use crate::Trial;
use crate::mechanisms::mechanism;
use crate::suite::Source;
use bochner_attention::Preset;
use bochner_datasets::{SentenceData, Split};
use bochner_interpret::{head_diversity, head_spread, kept_queries};
use bochner_models::classifier::{Task, TextClassifierConfig, Trainer};
use bochner_models::encoder::EncoderConfig;
use bochner_models::training::TrainingConfig;
use bochner_numerics::Seed;
use bochner_report::{Settings, Unit};
use bochner_text::{BatchConfig, TokenCounts, Vocabulary, VocabularyConfig, clean_str};
use ndarray::Axis;
use serde::{Deserialize, Serialize};

/// The settings of a classifier of sentences with an encoder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SentenceSettings {
    /// The encoder.
    pub encoder: EncoderConfig,
    /// The norm of its attention's magnitudes; absent where it has no choice.
    pub p: Option<f64>,
    /// Its spectral points R; absent where it has none.
    pub points: Option<usize>,
    /// The share of words that training takes for unknown ones.
    pub word_dropout: f64,
    /// Words of a sentence that are read.
    pub longest: usize,
    /// Sentences in a batch.
    pub batch: usize,
    /// The training.
    pub training: TrainingConfig,
    /// Passes over the training sentences.
    pub epochs: usize,
}

impl SentenceSettings {
    /// The settings with another model's attention: its norm, and its spectral points if it has a norm.
    pub(crate) fn of_model(&self, model: &str, p: Option<f64>) -> Settings {
        let (points, mut own) = (self.points.unwrap_or_default(), self.clone());
        own.encoder.layer.attention = mechanism(model, Preset::Paper, p, points);
        (own.p, own.points) = (p, p.map(|_| points));
        Settings::of(&own)
    }

    /// The settings among which a choice is made, in words.
    pub(crate) fn brief(&self) -> String {
        format!(
            "width {}, dropout {}, of words {}, {} epochs, rate {}, L2 {}",
            self.encoder.layer.width,
            self.encoder.layer.dropout,
            self.word_dropout,
            self.epochs,
            self.training.learning_rate,
            self.training.l2
        )
    }
}

/// A corpus whose sentences are cleaned, on which classifiers and naive Bayes are started.
#[derive(Debug)]
pub struct Corpus {
    words: Vec<Vec<String>>,
    labels: Vec<usize>,
    classes: usize,
    splits: Vec<Split>,
    /// The sentence whose weights are kept, where models are looked at.
    looked_at: Option<usize>,
}

/// The measure of how much heads differ: the mean Jensen-Shannon divergence between the rows of two heads.
pub const DIVERSITY: &str = "diversity";

/// The difference of heads by another measure: the standard deviation of a weight over the heads, summed over the
/// words.
pub const SPREAD: &str = "spread";

impl Corpus {
    /// Cleans the sentences of a set.
    pub fn new(data: &SentenceData) -> Self {
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

    fn labels(&self, rows: &[usize]) -> Vec<usize> {
        rows.iter().map(|&row| self.labels[row]).collect()
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
    fn start<'a>(&'a self, unit: &Unit) -> Result<Box<dyn Trial + 'a>, AnyError> {
        match &*unit.variant {
            BayesSettings::MODEL => Ok(Box::new(naive_bayes(unit, self)?)),
            _ => Ok(Box::new(classifier(unit, self)?)),
        }
    }
}

/// Sets up the training of a classifier with an encoder.
fn classifier<'a>(unit: &Unit, corpus: &'a Corpus) -> Result<Sentences<'a>, AnyError> {
    let settings: SentenceSettings = read_settings(unit)?;
    let split = split_of(unit, &corpus.splits)?;
    let train = split.train.iter().flat_map(|&row| &corpus.words[row]);
    let train: TokenCounts = train.collect();
    let vocabulary = Vocabulary::from_counts(&train, &VocabularyConfig::default())?;
    let numbers = |words: &Vec<String>| {
        let mut numbers = vocabulary.encode(words);
        numbers.truncate(settings.longest);
        if numbers.is_empty() {
            // A sentence without any word left after cleaning has one that is in no vocabulary.
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
    let (words, longest) = (vocabulary.len(), settings.longest);
    let config =
        TextClassifierConfig::transformer(words, corpus.classes, longest, settings.encoder);
    let trainer = Trainer::new(
        &config,
        &settings.training,
        task.with_word_dropout(settings.word_dropout)?,
        Seed::new(unit.seed),
    )?;
    Ok(Sentences {
        trainer,
        longest,
        corpus,
        split,
        sentences,
    })
}

struct Sentences<'a> {
    trainer: Trainer,
    longest: usize,
    corpus: &'a Corpus,
    split: &'a Split,
    /// The numbers of the words of all rows.
    sentences: Vec<Vec<usize>>,
}

impl Sentences<'_> {
    /// The share of rows whose class is found.
    fn accuracy(&self, rows: &[usize]) -> Result<f64, bochner_models::Error> {
        let (sentences, labels) = (select(&self.sentences, rows), self.corpus.labels(rows));
        Ok(1.0 - self.trainer.assess(&sentences, &labels)?.error)
    }

    /// The difference of the heads over all test sentences, and their weights on one of them.
    fn look(&self, row: usize) -> Result<Findings, AnyError> {
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

impl Trial for Sentences<'_> {
    fn model(&self) -> &dyn Training {
        &self.trainer
    }

    fn model_mut(&mut self) -> &mut dyn Training {
        &mut self.trainer
    }

    fn rows(&self) -> [usize; 3] {
        sizes(self.split)
    }

    fn evaluate(&self) -> Result<Evaluation, AnyError> {
        let validation = &self.split.validation;
        let validated = (!validation.is_empty()).then(|| self.accuracy(validation));
        Ok(Evaluation {
            validation: validated.transpose()?,
            test: self.accuracy(&self.split.test)?,
            ..Evaluation::default()
        })
    }

    fn inspected(&self) -> &'static [Moment] {
        match self.corpus.looked_at {
            Some(_) => &[Moment::OfV],
            None => &[],
        }
    }

    fn findings(&self, _: Moment, _: &dyn Fn() -> bool) -> Result<Findings, AnyError> {
        let looked = self.corpus.looked_at.map(|row| self.look(row));
        Ok(looked.transpose()?.unwrap_or_default())
    }
}
