//! Classification of sentences.

mod sentences;
mod task;

pub use crate::assessment::Assessment;
pub use crate::training::{EpochReport, TrainingConfig};
pub use sentences::SentenceClassifier;
pub use task::{Task, Trainer};

use crate::Error;
use crate::assessment::array;
use crate::embedding::{EmbeddingScale, WordEmbedding, WordEmbeddingConfig, tensor};
use crate::encoder::{Encoder, EncoderConfig, Logits};
use crate::positions::Positions;
use bochner_attention::{Mask, Pass, layer::Attention, mechanism::Inspection};
use bochner_nn::{Element, Linear, Parameters, mean_over_time};
use bochner_numerics::parallel::awake;
use bochner_numerics::{Seed, argument};
use bochner_ops::check_lengths;
use bochner_text::{BatchConfig, Vocabulary, ordered_batches, padded};
use dfdx::shapes::HasShape;
use dfdx::tensor::{Cpu, Merge, NoneTape, Tape, Tensor};
use ndarray::{Array2, Axis};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use task::lengths;

/// Settings of a [`TextClassifier`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct TextClassifierConfig {
    /// Number of words, padding included.
    pub words: usize,
    /// Number of classes.
    pub classes: usize,
    /// The settings of the encoder between the words and the mean.
    pub encoder: EncoderConfig,
    /// The settings of the words' vectors. Defaults to the rows of the table alone.
    #[serde(default)]
    pub embedding: WordEmbeddingConfig,
    /// The [fingerprint](Vocabulary::fingerprint) of the vocabulary that numbers the words. A [`SentenceClassifier`]
    /// refuses a vocabulary with another fingerprint. If `None`, only the numbers of words are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<u64>,
    /// The names of the classes, in the order of their numbers, for a classifier that answers with names. Defaults to
    /// none; if there are any, each class has its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[doc(alias = "id2label")]
    pub class_names: Vec<String>,
}

bochner_numerics::checked_when_read!(TextClassifierConfig);

impl TextClassifierConfig {
    fn validate(&self) -> Result<(), Error> {
        argument::at_least_one("words", self.words)?;
        argument::at_least_one("classes", self.classes)?;
        let names = &self.class_names;
        if !names.is_empty() {
            argument::shape("class_names", &[self.classes], &[names.len()])?;
        }
        let distinct: BTreeSet<&String> = names.iter().collect();
        let allowed = "as many names as classes, each its own";
        let is_distinct = distinct.len() == names.len();
        argument::in_range(is_distinct, "class_names", distinct.len() as f64, allowed)?;
        // Checked here so that the error names the encoder's `width`, not the table of words.
        self.encoder.validate()
    }

    /// A Transformer: vectors times the root of their width, sinusoidal positions up to `longest` words, dropout
    /// on the sum at the layers' rate, the encoder.
    pub fn transformer(
        words: usize,
        classes: usize,
        longest: usize,
        encoder: EncoderConfig,
    ) -> Self {
        Self {
            words,
            classes,
            embedding: WordEmbeddingConfig {
                scale: EmbeddingScale::RootOfWidth,
                positions: Positions::Sinusoidal { longest },
                dropout: encoder.layer.dropout,
            },
            encoder,
            vocabulary: None,
            class_names: Vec::new(),
        }
    }

    /// A [`transformer`](Self::transformer) for the words of a vocabulary and for classes with these names, as a
    /// [`SentenceClassifier`] is made of it.
    pub fn of_text(
        vocabulary: &Vocabulary,
        class_names: &[String],
        longest: usize,
        encoder: EncoderConfig,
    ) -> Self {
        Self {
            vocabulary: Some(vocabulary.fingerprint()),
            class_names: class_names.to_vec(),
            ..Self::transformer(vocabulary.len(), class_names.len(), longest, encoder)
        }
    }

    /// Refuses a vocabulary that the model was not made for.
    ///
    /// # Errors
    /// [`Error::Text`] with `AnotherVocabulary`, where the settings know theirs; [`Error::Argument`] for another number
    /// of words.
    pub fn expect(&self, vocabulary: &Vocabulary) -> Result<(), Error> {
        if let Some(fingerprint) = self.vocabulary {
            vocabulary.expect(fingerprint)?;
        }
        Ok(argument::shape(
            "the vocabulary",
            &[self.words],
            &[vocabulary.len()],
        )?)
    }
}

/// The distinct labels in ascending order, the names of the classes, and for each label the number of its class: for
/// labels of any kind, numbers with gaps among them.
///
/// `bochner_datasets::labelled` gives both for the labels of a file.
///
/// ```
/// let (names, classes) = bochner_models::classifier::number_labels(&["good", "bad", "good"]);
/// assert_eq!((names, classes), (vec!["bad".to_string(), "good".to_string()], vec![1, 0, 1]));
/// ```
#[doc(alias = "LabelEncoder")]
pub fn number_labels<S: AsRef<str>>(labels: &[S]) -> (Vec<String>, Vec<usize>) {
    let distinct: BTreeSet<&str> = labels.iter().map(AsRef::as_ref).collect();
    let names: Vec<String> = distinct.into_iter().map(str::to_owned).collect();
    let number = |label: &S| names.partition_point(|name| name.as_str() < label.as_ref());
    let numbers = labels.iter().map(number).collect();
    (names, numbers)
}

/// Logits of a class for each sentence: vectors of the words, encoder, mean over the words, linear map.
///
/// A sentence without words is one, too: the mean of nothing is zero, so that its logits are the bias of the
/// linear map.
///
/// ```
/// use bochner_attention::{Pass, Softmax};
/// use bochner_models::classifier::{TextClassifier, TextClassifierConfig};
/// use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
/// use bochner_numerics::Seed;
/// use bochner_text::BatchConfig;
/// use bochner_models::prelude::*;
///
/// let layer = EncoderLayerConfig {
///     width: 8,
///     heads: 2,
///     hidden: 16,
///     attention: Softmax::default().into(),
///     dropout: 0.1,
///     norm: NormPlacement::Pre,
///     ..Default::default()
/// };
/// let config = TextClassifierConfig::transformer(100, 2, 60, EncoderConfig::new(1, layer));
/// let device = Cpu::default();
/// let model: TextClassifier<f32> = TextClassifier::try_new(&device, &config, Seed::new(1))?;
///
/// // Two sentences, the second one padded: its length says so, whatever word fills it up.
/// let words = device.tensor_from_vec(vec![17, 4, 99, 17, 23, 0], (2, 3));
/// let pass = Pass::Evaluation { seed: Seed::new(2) };
/// let classified = model.apply(words.clone(), Some(&[3, 2]), pass)?;
/// assert_eq!(classified.output.shape(), &(2, 2));
/// let seen = model.inspect(words, Some(&[3, 2]), pass)?;
/// assert_eq!(seen[0].weights.dim(), (2, 2, 3, 3));
///
/// // The same sentences as lists, which are cut into batches and padded.
/// let logits = model.predict(&[vec![17, 4, 99], vec![17, 23]], &BatchConfig::default(), pass)?;
/// assert_eq!(logits.dim(), (2, 2));
/// # Ok::<(), bochner_models::Error>(())
/// ```
///
/// [`Trainer`] trains it, and goes on from a file; [`SentenceClassifier`] is one with its vocabulary, in a file of their
/// own.
#[derive(Clone, Debug)]
pub struct TextClassifier<E: Element> {
    embedding: WordEmbedding<E>,
    encoder: Encoder<E>,
    head: Linear<usize, usize, E>,
    config: TextClassifierConfig,
    /// The step of training that it stands at.
    step: u64,
}

impl<E: Element> TextClassifier<E> {
    /// A classifier with random initial values.
    ///
    /// # Errors
    /// A setting that is out of range is refused.
    pub fn try_new(device: &Cpu, config: &TextClassifierConfig, seed: Seed) -> Result<Self, Error> {
        config.validate()?;
        let stream = |part: &str| seed.child(part).stream("initial values");
        let (width, words) = (config.encoder.layer.width, config.words);
        let place = seed.child("embedding");
        Ok(Self {
            embedding: WordEmbedding::try_new(device, words, width, &config.embedding, place)?,
            encoder: Encoder::try_new(device, &config.encoder, seed.child("encoder"))?,
            head: Linear::try_new(device, width, config.classes, &mut stream("head"))?,
            config: config.clone(),
            step: 0,
        })
    }

    /// The classifier's settings.
    pub fn config(&self) -> &TextClassifierConfig {
        &self.config
    }

    /// Goes to another step of training; see [`MultiHead::go_to_step`](bochner_attention::MultiHead::go_to_step).
    /// A mechanism that draws something for many steps keeps its draw until it is told.
    pub fn go_to_step(&mut self, step: u64) {
        self.step = step;
        self.encoder.go_to_step(step);
    }

    /// The logits, `[B, classes]`, of sentences `[B, T]`, and the attention's penalty, already weighted and
    /// summed over the batch: [`Penalty::share`](bochner_attention::card::Penalty::share) says what to multiply it with.
    ///
    /// Only the first `lengths[b]` words of sentence `b` count. The padding behind them changes neither the result nor any
    /// gradient, whatever word it is and however long. Dropout is drawn by an element's place in the batch, so its draws
    /// depend on T.
    ///
    /// # Errors
    /// [`Error::Argument`] unless there is one length for each sentence, from 0 to T, before anything is
    /// computed; [`Error::TooLong`] if T is more than there are positions; [`Error::Nn`] for a word that is not
    /// in the table.
    pub fn apply<T>(
        &self,
        sentences: Tensor<(usize, usize), usize, Cpu, T>,
        lengths: Option<&[usize]>,
        pass: Pass,
    ) -> Result<Logits<E, T>, Error>
    where
        T: Tape<E, Cpu> + Merge<T>,
    {
        let mask = padding(lengths, *sentences.shape())?;
        let x = self.embedding.apply(sentences, pass)?;
        let encoded = self.encoder.apply(x, &mask, pass)?;
        let mean = mean_over_time(encoded.output, lengths)?;
        Ok(Attention {
            output: self.head.apply(mean)?,
            penalty: encoded.penalty,
        })
    }

    /// Weights of every head, spectral points and other inner values of each layer's attention.
    ///
    /// # Errors
    /// The errors of [`apply`](Self::apply).
    pub fn inspect(
        &self,
        sentences: Tensor<(usize, usize), usize, Cpu, NoneTape>,
        lengths: Option<&[usize]>,
        pass: Pass,
    ) -> Result<Vec<Inspection<E>>, Error> {
        let mask = padding(lengths, *sentences.shape())?;
        let x = self.embedding.apply(sentences, pass)?;
        self.encoder.inspect(x, &mask, pass)
    }

    /// The logits of sentences that are lists of the words' numbers, `[N, classes]`.
    ///
    /// Sentences of similar length are read together, in the batches of [`ordered_batches`]; what a mechanism draws
    /// for a sentence depends on its place there.
    ///
    /// # Errors
    /// [`Error::Argument`] without sentences; [`Error::SentenceTooLong`] or [`Error::Nn`] for a sentence longer than the
    /// table of positions or a word that is not in the table of words; [`Error::Text`] for a sentence longer than a
    /// batch.
    pub fn predict(
        &self,
        sentences: &[Vec<usize>],
        batches: &BatchConfig,
        pass: Pass,
    ) -> Result<Array2<E>, Error> {
        self.reads(sentences)?;
        let batches = ordered_batches(&lengths(sentences), batches)?;
        awake(|| {
            let shape = (sentences.len(), self.config.classes);
            let mut all = Array2::from_elem(shape, E::default());
            for (batch, i) in batches.iter().zip(0..) {
                let read = padded(sentences, batch, Vocabulary::PADDING)?;
                let classified = self.apply(tensor(&read)?, Some(&read.lengths), pass.nth(i))?;
                let logits = array(&classified.output);
                for (&place, row) in batch.iter().zip(logits.axis_iter(Axis(0))) {
                    all.row_mut(place).assign(&row);
                }
            }
            Ok(all)
        })
    }

    /// Returns [`inspect`](Self::inspect) of sentences that are lists of the words' numbers, padded to the longest of
    /// them.
    ///
    /// # Errors
    /// The errors of [`predict`](Self::predict), except those of batches.
    pub fn inspect_sentences(
        &self,
        sentences: &[Vec<usize>],
        pass: Pass,
    ) -> Result<Vec<Inspection<E>>, Error> {
        self.reads(sentences)?;
        let places: Vec<usize> = (0..sentences.len()).collect();
        let read = padded(sentences, &places, Vocabulary::PADDING)?;
        self.inspect(tensor(&read)?, Some(&read.lengths), pass)
    }

    /// Refuses an empty list, and names the first sentence that is longer than the table of positions.
    fn reads(&self, sentences: &[Vec<usize>]) -> Result<(), Error> {
        argument::at_least_one("sentences", sentences.len())?;
        let longest = self.embedding.longest().unwrap_or(usize::MAX);
        match sentences.iter().position(|words| words.len() > longest) {
            None => Ok(()),
            Some(sentence) => Err(Error::SentenceTooLong {
                sentence,
                got: sentences[sentence].len(),
                longest,
            }),
        }
    }
}

/// The mask that hides the places behind each sentence's length: as keys from the attention, and as queries
/// from the mean that a mechanism may infer its spectral points from.
fn padding(lengths: Option<&[usize]>, (batch, time): (usize, usize)) -> Result<Mask, Error> {
    let Some(lengths) = lengths else {
        return Ok(Mask::none());
    };
    check_lengths(lengths, batch, time)?;
    Ok(Mask::none().with_key_lengths(lengths.to_vec()))
}

impl<E: Element> Parameters<E> for TextClassifier<E> {
    bochner_nn::visit_fields!(E: embedding, encoder, head);
}
