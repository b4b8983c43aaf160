//! Classifiers of sentences: a Transformer encoder with any attention, and naive Bayes.

mod bayes;

pub use bayes::BayesSettings;
pub(crate) use bayes::naive_bayes;

use super::{Evaluation, Facts, Findings, Keep, Step, failed};
use crate::store::History;
use crate::{Error, Trial, Unit};
use bochner_attention::{Pass, Penalty, Variant};
use bochner_datasets::{SentenceData, Split};
use bochner_interpret::{head_diversity, head_spread};
use bochner_models::classifier::{TextClassifier, TextClassifierConfig};
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_nn::{
    Adam, Checkpoint, Progress, alloc_gradients, clip_by_norm, cross_entropy, parameter_count,
    zero_gradients,
};
use bochner_numerics::Seed;
use bochner_numerics::parallel::awake;
use bochner_ops::{AdamConfig, WeightDecay};
use bochner_text::{
    BatchConfig, Padded, TokenCounts, Vocabulary, VocabularyConfig, clean_str, ordered_batches,
    padded, shuffled_batches,
};
use dfdx::prelude::{AsArray, Backward, Trace};
use dfdx::tensor::{Cpu, Gradients, Tensor, TensorFromVec};
use ndarray::{Array2, Array4, Axis};
use rand::Rng;
use serde::{Deserialize, Serialize};
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

/// The mean standard deviation of a weight over the heads.
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

    /// The corpus, whose models are looked at: the heads over all test sentences, and the weights on one sentence.
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

/// Sets up the training of a classifier with an encoder.
pub(crate) fn start<'a>(unit: &Unit, corpus: &'a Corpus) -> Result<Box<dyn Trial + 'a>, Error> {
    let settings: SentenceSettings = unit.read_settings()?;
    let split = corpus.split(unit)?;
    let classifier = Classifier::new(unit.clone(), settings, corpus, split);
    Ok(Box::new(classifier.map_err(|error| failed(unit, &*error))?))
}

/// Whatever a library says.
type Said = Box<dyn std::error::Error>;

struct Classifier<'a> {
    unit: Unit,
    settings: SentenceSettings,
    corpus: &'a Corpus,
    split: &'a Split,
    /// The numbers of the words of all rows.
    sentences: Vec<Vec<usize>>,
    vocabulary: Vocabulary,
    model: TextClassifier<f32>,
    adam: Adam<f32>,
    gradients: Option<Gradients<f32, Cpu>>,
    penalty: Penalty,
    epochs: usize,
}

impl<'a> Classifier<'a> {
    fn new(
        unit: Unit,
        settings: SentenceSettings,
        corpus: &'a Corpus,
        split: &'a Split,
    ) -> Result<Self, Said> {
        let train: TokenCounts = split
            .train
            .iter()
            .flat_map(|&row| &corpus.words[row])
            .collect();
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
        let sentences = corpus.words.iter().map(numbers).collect();
        let config = config(&settings, vocabulary.len(), corpus.classes);
        let adam = AdamConfig {
            learning_rate: settings.learning_rate,
            weight_decay: WeightDecay::L2(settings.l2),
            ..AdamConfig::default()
        };
        Ok(Self {
            model: TextClassifier::try_new(&Cpu::default(), &config, Seed::new(unit.seed))?,
            adam: Adam::new(adam)?,
            gradients: None,
            penalty: settings.attention.card().penalty,
            epochs: 0,
            unit,
            settings,
            corpus,
            split,
            sentences,
            vocabulary,
        })
    }

    fn seed(&self, purpose: &str) -> Seed {
        Seed::new(self.unit.seed).child(purpose)
    }

    fn batches(&self) -> BatchConfig {
        BatchConfig {
            tokens: self.settings.batch * self.settings.longest,
            sentences: Some(self.settings.batch),
            ..BatchConfig::default()
        }
    }

    fn lengths(&self, rows: &[usize]) -> Vec<[usize; 1]> {
        rows.iter()
            .map(|&row| [self.sentences[row].len()])
            .collect()
    }

    /// One pass over the training rows in batches of similar length: the mean loss and the mean Brier score.
    fn pass(&mut self) -> Result<Step, Said> {
        let train = &self.split.train;
        let epoch = self.seed("epoch").nth(self.epochs as u64);
        let mut stream = epoch.stream("batches");
        let batches = shuffled_batches(&self.lengths(train), &self.batches(), &mut stream)?;
        let (mut loss, mut brier) = (0.0, 0.0);
        for batch in batches {
            let rows: Vec<usize> = batch.iter().map(|&place| train[place]).collect();
            let mut numbers = padded(&self.sentences, &rows, Vocabulary::PADDING)?;
            for word in &mut numbers.numbers {
                let dropped = self.settings.word_dropout > 0.0
                    && stream.r#gen::<f64>() < self.settings.word_dropout;
                if dropped && *word != Vocabulary::PADDING {
                    *word = Vocabulary::UNKNOWN;
                }
            }
            let step = self.step(&numbers, &self.corpus.labels(&rows))?;
            let share = rows.len() as f64 / train.len() as f64;
            loss += share * step.loss;
            brier += share * step.mse;
        }
        self.epochs += 1;
        Ok(Step { loss, mse: brier })
    }

    fn step(&mut self, batch: &Padded, labels: &[usize]) -> Result<Step, Said> {
        let steps = self.adam.state().steps;
        let pass = Pass::Training {
            seed: self.seed("pass").nth(steps),
            dropout: self.settings.dropout,
        };
        let gradients = match self.gradients.take() {
            Some(gradients) => gradients,
            None => alloc_gradients(&self.model)?,
        };
        let words = tensor(batch);
        let classified = self
            .model
            .apply(words.trace(gradients), Some(&batch.lengths), pass)?;
        let mse = brier(&classified.output.as_vec(), labels, self.corpus.classes);
        let share = self.penalty.share(labels.len(), self.split.train.len());
        let loss = cross_entropy(classified.output, labels)? + classified.penalty * share as f32;
        let value = f64::from(loss.array());
        let mut gradients = loss.backward();
        clip_by_norm(&self.model, &mut gradients, self.settings.clip_norm)?;
        self.adam.step(&mut self.model, &mut gradients)?;
        zero_gradients(&self.model, &mut gradients)?;
        self.gradients = Some(gradients);
        self.model.go_to_step(self.adam.state().steps);
        Ok(Step { loss: value, mse })
    }

    /// The classes that are found for some rows.
    fn classify(&self, rows: &[usize]) -> Result<Vec<usize>, Said> {
        let mut found = vec![0; rows.len()];
        for batch in ordered_batches(&self.lengths(rows), &self.batches())? {
            let chosen: Vec<usize> = batch.iter().map(|&place| rows[place]).collect();
            let numbers = padded(&self.sentences, &chosen, Vocabulary::PADDING)?;
            let pass = Pass::Evaluation {
                seed: self.seed("evaluation"),
            };
            let classified = self
                .model
                .apply(tensor(&numbers), Some(&numbers.lengths), pass)?;
            let logits = classified.output.as_vec();
            for (&place, logits) in batch.iter().zip(logits.chunks(self.corpus.classes)) {
                found[place] = largest(logits);
            }
        }
        Ok(found)
    }

    fn measured(&self) -> Result<Evaluation, Said> {
        let on =
            |rows: &[usize]| Ok::<f64, Said>(self.corpus.accuracy(rows, &self.classify(rows)?));
        let validation = &self.split.validation;
        Ok(Evaluation {
            validation: (!validation.is_empty())
                .then(|| on(validation))
                .transpose()?,
            test: on(&self.split.test)?,
            ..Evaluation::default()
        })
    }

    /// The weights of the first layer's heads, `[B, M, T, T]`.
    fn weights(&self, batch: &Padded) -> Result<Array4<f32>, Said> {
        let pass = Pass::Evaluation {
            seed: self.seed("evaluation"),
        };
        let mut layers = self
            .model
            .inspect(tensor(batch), Some(&batch.lengths), pass)?;
        Ok(layers.swap_remove(0).weights)
    }

    /// How much the heads differ over all test sentences, and their weights on one sentence.
    fn look(&self, row: usize) -> Result<Findings, Said> {
        let test = &self.split.test;
        let (mut diversity, mut spread) = (0.0, 0.0);
        for batch in ordered_batches(&self.lengths(test), &self.batches())? {
            let rows: Vec<usize> = batch.iter().map(|&place| test[place]).collect();
            let numbers = padded(&self.sentences, &rows, Vocabulary::PADDING)?;
            let weights = self.weights(&numbers)?;
            let shape = (rows.len(), numbers.width);
            let queries = Array2::from_shape_fn(shape, |(i, j)| j < numbers.lengths[i]);
            diversity += head_diversity(weights.view(), queries.view())?.sum();
            spread += head_spread(weights.view(), queries.view())?.sum();
        }
        let each = 1.0 / test.len() as f64;
        let one = padded(&self.sentences, &[row], Vocabulary::PADDING)?;
        let weights = self.weights(&one)?;
        let heads = weights.index_axis(Axis(0), 0);
        let heads: Vec<Vec<f32>> = heads
            .outer_iter()
            .map(|head| head.iter().copied().collect())
            .collect();
        let words = &self.corpus.words[row];
        Ok(
            Findings::of([(DIVERSITY, each * diversity), (SPREAD, each * spread)])
                .with("weights", &heads)
                .with("words", &words[..words.len().min(self.settings.longest)]),
        )
    }

    /// What a checkpoint must agree in: the unit and the words.
    fn description(&self) -> String {
        format!(
            "{}, vocabulary {:016x}",
            self.unit.id(),
            self.vocabulary.fingerprint()
        )
    }

    fn restore(&mut self, path: &Path) -> Result<bochner_nn::Integrity, Said> {
        let saved = Checkpoint::<f32>::read(path)?;
        saved.restore(&self.description(), &mut self.model)?;
        let state = saved.adam().ok_or("it has no optimiser")?;
        self.adam = Adam::with_state(*self.adam.config(), state.clone())?;
        self.epochs = usize::try_from(saved.progress().step)?;
        self.model.go_to_step(self.adam.state().steps);
        Ok(saved.integrity())
    }
}

fn config(settings: &SentenceSettings, words: usize, classes: usize) -> TextClassifierConfig {
    let layer = EncoderLayerConfig {
        width: settings.width,
        heads: settings.heads,
        hidden: settings.hidden,
        attention: settings.attention.clone(),
        dropout: settings.dropout,
        norm: NormPlacement::Pre,
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

fn tensor(batch: &Padded) -> Tensor<(usize, usize), usize, Cpu> {
    let shape = (batch.lengths.len(), batch.width);
    Cpu::default().tensor_from_vec(batch.numbers.clone(), shape)
}

fn largest(values: &[f32]) -> usize {
    let place = (0..values.len()).max_by(|&a, &b| values[a].total_cmp(&values[b]).then(b.cmp(&a)));
    place.unwrap_or(0)
}

/// The squared distance between the probabilities and the right class, mean over the rows.
fn brier(logits: &[f32], labels: &[usize], classes: usize) -> f64 {
    let row = |(logits, &label): (&[f32], &usize)| {
        let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let weights: Vec<f64> = logits
            .iter()
            .map(|&logit| f64::from(logit - most).exp())
            .collect();
        let sum: f64 = weights.iter().sum();
        let square = |(class, weight): (usize, &f64)| {
            (weight / sum - f64::from(u8::from(class == label))).powi(2)
        };
        weights.iter().enumerate().map(square).sum::<f64>()
    };
    logits.chunks(classes).zip(labels).map(row).sum::<f64>() / labels.len() as f64
}

impl Trial for Classifier<'_> {
    fn facts(&self) -> Facts {
        self.corpus.facts(self.split, parameter_count(&self.model))
    }

    fn epoch(&mut self) -> Result<Step, Error> {
        let step = awake(|| self.pass());
        step.map_err(|error| failed(&self.unit, &*error))
    }

    fn evaluate(&self) -> Result<Evaluation, Error> {
        self.measured().map_err(|error| failed(&self.unit, &*error))
    }

    fn save(&self, path: &Path) -> Result<(), Error> {
        let progress = Progress {
            step: self.epochs as u64,
            ..Progress::default()
        };
        Checkpoint::of(self.description(), &self.model)
            .with_adam(&self.adam)
            .with_progress(progress)
            .write(path)
            .map_err(|error| Error::checkpoint(path, &error))
    }

    fn resume(&mut self, path: &Path) -> Result<(), Error> {
        Error::unless_verified(path, self.restore(path))
    }

    fn epochs_done(&self) -> usize {
        self.epochs
    }

    fn keeps(&self) -> Keep {
        match self.corpus.looked_at {
            Some(_) => Keep::Weights,
            None => Keep::Nothing,
        }
    }

    fn findings(&self, history: &History) -> Result<Findings, Error> {
        let curves = Findings::from(history.artefacts());
        let Some(row) = self.corpus.looked_at else {
            return Ok(curves);
        };
        let looked = self
            .look(row)
            .map_err(|error| failed(&self.unit, &*error))?;
        Ok(curves.and(looked))
    }
}

#[cfg(test)]
mod tests;
