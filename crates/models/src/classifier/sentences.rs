//! A classifier of sentences: a model together with the vocabulary that its words are of, in one file.

use super::{Task, TextClassifier, TextClassifierConfig};
use crate::Error;
use crate::assessment::{ConfusionMatrix, largest};
use crate::saved::{Kind, Read};
use crate::training;
use bochner_attention::{Pass, mechanism::Inspection};
use bochner_numerics::{Seed, argument};
use bochner_ops::log_softmax;
use bochner_text::{BatchConfig, Vocabulary, ordered_batches};
use dfdx::tensor::Cpu;
use ndarray::Array2;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A classifier of sentences of words: the model, the vocabulary that numbers the words, the settings of batches, and the
/// seed of evaluations.
///
/// One file holds all of it, a [`Checkpoint`](bochner_nn::Checkpoint) without an optimiser. It is written beside its place
/// and then moved there, so that an older file stays whole until the new one is complete.
///
/// A sentence is a list of words, split and cleaned like those of the training. Words that the vocabulary does not have
/// count as unknown.
///
/// Some mechanisms draw in evaluation, such as the spectral points of [`Mikan`](bochner_attention::Mikan). The draws of a
/// sentence follow from the seed and from its place in the batches, which depends on the lengths of all sentences in the
/// call. So a sentence may get other logits alone than among others. The same sentences in the same order always get the
/// same logits, from the trainer too.
///
/// ```
/// use bochner_attention::Softmax;
/// use bochner_models::classifier::{SentenceClassifier, Task, TextClassifierConfig, Trainer};
/// use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
/// use bochner_models::training::TrainingConfig;
/// use bochner_numerics::Seed;
/// use bochner_text::{BatchConfig, TokenCounts, Vocabulary, VocabularyConfig};
///
/// let lines = ["a fine film", "a dull film", "what a fine day", "how dull"];
/// let sentences = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
/// let counts: TokenCounts = sentences.iter().flatten().collect();
/// let vocabulary = Vocabulary::from_counts(&counts, &VocabularyConfig::default())?;
/// let numbers = vocabulary.encode_all("the sentences", &sentences)?;
/// let task = Task::new(numbers, vec![1, 0, 1, 0], BatchConfig::default())?;
///
/// let (attention, norm) = (Softmax::default().into(), NormPlacement::Pre);
/// let layer = EncoderLayerConfig { width: 16, heads: 2, hidden: 32, attention, dropout: 0.0, norm, ..Default::default() };
/// let encoder = EncoderConfig::new(1, layer);
/// let names = ["dull", "fine"].map(String::from);
/// let config = TextClassifierConfig::of_text(&vocabulary, &names, 30, encoder);
/// let training = TrainingConfig { learning_rate: 0.01, ..Default::default() };
/// let mut trainer = Trainer::new(&config, &training, task, Seed::new(1))?;
/// for _ in 0..60 {
///     trainer.epoch()?;
/// }
///
/// let directory = tempfile::tempdir().unwrap();
/// let path = directory.path().join("classifier.safetensors");
/// trainer.sentence_classifier(vocabulary)?.save(&path)?;
/// let classifier = SentenceClassifier::load(&path)?;
/// assert_eq!(classifier.labels(&sentences)?, ["fine", "dull", "fine", "dull"]);
/// assert_eq!(classifier.confusion(&sentences, &[1, 0, 1, 0])?.accuracy(), 1.0);
/// let seen = classifier.inspect(&sentences[..1])?;
/// assert_eq!(seen[0].weights.dim(), (1, 2, 3, 3));
/// # Ok::<(), bochner_models::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SentenceClassifier {
    model: TextClassifier<f32>,
    vocabulary: Vocabulary,
    batches: BatchConfig,
    seed: Seed,
}

/// The file of a classifier.
const FILE: Kind = Kind {
    name: "sentence-classifier",
    what: "classifier of sentences",
    writer: "SentenceClassifier",
    trained_as: <Task as training::Task>::MODEL,
    method: "sentence_classifier",
};

/// The contents of the file besides the model.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    vocabulary: Vocabulary,
    batches: BatchConfig,
    seed: Seed,
}

impl SentenceClassifier {
    /// A classifier whose words are the vocabulary's. Mechanisms that draw something in evaluation draw it from the seed.
    ///
    /// Its batches have the default settings.
    ///
    /// # Errors
    /// The errors of [`TextClassifierConfig::expect`] for a vocabulary that the model was not made for.
    pub fn new(
        model: TextClassifier<f32>,
        vocabulary: Vocabulary,
        seed: Seed,
    ) -> Result<Self, Error> {
        model.config().expect(&vocabulary)?;
        Ok(Self {
            model,
            vocabulary,
            batches: BatchConfig::default(),
            seed,
        })
    }

    /// The classifier with other settings of its batches.
    ///
    /// # Errors
    /// [`Error::Text`] for batches of nothing.
    pub fn with_batches(self, batches: BatchConfig) -> Result<Self, Error> {
        ordered_batches::<1>(&[], &batches)?;
        Ok(Self { batches, ..self })
    }

    /// The model.
    pub fn model(&self) -> &TextClassifier<f32> {
        &self.model
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The settings of batches.
    pub fn batches(&self) -> &BatchConfig {
        &self.batches
    }

    /// The seed of the mechanisms' draws in evaluation.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// The logits of sentences, `[N, classes]`.
    ///
    /// # Errors
    /// The errors of [`TextClassifier::predict`]; [`Error::Argument`] where a logit is NaN or infinite, since parameters of
    /// the model are too large.
    pub fn logits<S: AsRef<str>>(&self, sentences: &[Vec<S>]) -> Result<Array2<f32>, Error> {
        let numbers = self.numbers(sentences);
        let pass = self.evaluation();
        let logits = self.model.predict(&numbers, &self.batches, pass)?;
        argument::finite("logits", logits.shape(), &logits)?;
        Ok(logits)
    }

    /// The probability of each class for each sentence, `[N, classes]`: the softmax of the logits.
    ///
    /// # Errors
    /// The errors of [`logits`](Self::logits).
    pub fn probabilities<S: AsRef<str>>(&self, sentences: &[Vec<S>]) -> Result<Array2<f32>, Error> {
        let mut all = self.logits(sentences)?;
        for mut row in all.rows_mut() {
            log_softmax(row.as_slice_mut().expect("a row of a new array"));
            row.mapv_inplace(f32::exp);
        }
        Ok(all)
    }

    /// The class of each sentence: that of the largest logit, the first of equal ones.
    ///
    /// # Errors
    /// The errors of [`logits`](Self::logits).
    pub fn classes<S: AsRef<str>>(&self, sentences: &[Vec<S>]) -> Result<Vec<usize>, Error> {
        let logits = self.logits(sentences)?;
        Ok(logits.rows().into_iter().map(largest).collect())
    }

    /// The name of the class of each sentence; see [`classes`](Self::classes).
    ///
    /// # Errors
    /// The errors of [`logits`](Self::logits); [`Error::Unsupported`] for a model whose settings have no `class_names`.
    pub fn labels<S: AsRef<str>>(&self, sentences: &[Vec<S>]) -> Result<Vec<&str>, Error> {
        let names = &self.model.config().class_names;
        if names.is_empty() {
            return Err(Error::Unsupported {
                what: "labels of a classifier whose classes have no names",
                instead: "`SentenceClassifier::classes`, or a model with `class_names` in its settings",
            });
        }
        let classes = self.classes(sentences)?.into_iter();
        Ok(classes.map(|class| &*names[class]).collect())
    }

    /// The confusion matrix of sentences whose classes, `[N]`, are known.
    ///
    /// # Errors
    /// The errors of [`logits`](Self::logits) and of [`ConfusionMatrix::of_rows`].
    pub fn confusion<S: AsRef<str>>(
        &self,
        sentences: &[Vec<S>],
        classes: &[usize],
    ) -> Result<ConfusionMatrix, Error> {
        ConfusionMatrix::of_rows(self.logits(sentences)?.view(), classes)
    }

    /// Weights of every layer and head, spectral points and other inner values of the attention on sentences, which are
    /// padded to the longest of them.
    ///
    /// A mechanism that draws spectral points draws for each sentence by its place, as for the first batch of
    /// [`logits`](Self::logits): what is seen of one sentence alone is what its logits came from.
    ///
    /// # Errors
    /// The errors of [`TextClassifier::inspect_sentences`].
    pub fn inspect<S: AsRef<str>>(
        &self,
        sentences: &[Vec<S>],
    ) -> Result<Vec<Inspection<f32>>, Error> {
        let numbers = self.numbers(sentences);
        let pass = self.evaluation().nth(0);
        self.model.inspect_sentences(&numbers, pass)
    }

    fn numbers<S: AsRef<str>>(&self, sentences: &[Vec<S>]) -> Vec<Vec<usize>> {
        let each = sentences.iter();
        each.map(|words| self.vocabulary.encode(words)).collect()
    }

    fn evaluation(&self) -> Pass {
        Pass::Evaluation { seed: self.seed }
    }

    /// Writes the classifier to a file; a file that was there before is replaced when the new one is whole.
    ///
    /// # Errors
    /// [`Error::Nn`] if the file cannot be written, or for a parameter that is NaN or infinite; a file that was there
    /// before stays as it is.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let written = Written {
            vocabulary: self.vocabulary.clone(),
            batches: self.batches.clone(),
            seed: self.seed,
        };
        let model = (&self.model, self.model.step);
        FILE.write(path.as_ref(), model, self.model.config(), &written)
    }

    /// Reads a classifier from its file. It gives the logits of the one that was saved.
    ///
    /// # Errors
    /// [`Error::Nn`] if the file cannot be read, is cut off or damaged, or holds parameters of other shapes than its
    /// settings; [`Error::TrainingRun`] for a checkpoint of a [`Trainer`](super::Trainer), [`Error::OtherContents`] for
    /// one of something else; [`Error::Argument`] for a vocabulary of another model.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let saved: Read<TextClassifierConfig, Written> = FILE.read(path.as_ref())?;
        // A model of another vocabulary's size is not even built.
        saved.config.expect(&saved.parts.vocabulary)?;
        let seed = saved.parts.seed;
        let mut model = TextClassifier::try_new(&Cpu::default(), &saved.config, seed)?;
        let step = saved.restore(&mut model)?;
        model.go_to_step(step);
        Self::new(model, saved.parts.vocabulary, seed)?.with_batches(saved.parts.batches)
    }
}
