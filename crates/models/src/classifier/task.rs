//! Training a text classifier on batches of sentences of similar length.

use super::{SentenceClassifier, TextClassifier, TextClassifierConfig};
use crate::Error;
use crate::assessment::Assessment;
use crate::embedding::tensor;
use crate::encoder::Logits;
use crate::fingerprint::{batch_numbers, fingerprint};
use crate::training::{self, Objective};
use bochner_attention::mechanism::Inspection;
use bochner_numerics::{Seed, argument};
use bochner_text::{BatchConfig, Padded, Vocabulary, ordered_batches, padded, shuffled_batches};
use dfdx::prelude::{OwnedTape, Trace};
use dfdx::tensor::{Cpu, Gradients};
use ndarray::Array2;
use rand::Rng;
use std::num::NonZeroUsize;

/// Sentences whose classes are to be learned.
///
/// Sentences are lists of the words' numbers, as a [`Vocabulary`] gives them; one without words is a sentence, too.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    sentences: Vec<Vec<usize>>,
    classes: Vec<usize>,
    batches: BatchConfig,
    word_dropout: f64,
}

/// A text classifier in training, with its data, optimiser and random stream.
///
/// The objective of a batch is the mean cross-entropy, plus $\beta \mathrm{KL}$ as a mean over the batch and
/// divided by the number of training sentences.
///
/// Training stops when the accuracy on other sentences has not risen for three epochs, and the best model is kept:
///
/// ```
/// use bochner_attention::Softmax;
/// use bochner_models::classifier::{Task, TextClassifierConfig, Trainer};
/// use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
/// use bochner_models::training::{Curves, FitConfig, Goal, TrainingConfig};
/// use bochner_numerics::Seed;
/// use bochner_text::BatchConfig;
///
/// // Whether word 2 occurs more often than word 3, in sentences of up to nine words.
/// let sentence = |i: usize| (0..1 + i % 9).map(|t| 2 + (i * 7 + t * t * 3 + i / 5) % 4).collect();
/// let sentences: Vec<Vec<usize>> = (0..200).map(sentence).collect();
/// let count = |s: &[usize], word| s.iter().filter(|&&w| w == word).count();
/// let classes: Vec<usize> =
///     sentences.iter().map(|s| usize::from(count(s, 2) > count(s, 3))).collect();
/// let (train, others) = sentences.split_at(150);
/// let batches = BatchConfig { tokens: 200, sentences: Some(16), ..Default::default() };
/// let task = Task::new(train.to_vec(), classes[..150].to_vec(), batches)?;
///
/// let layer = EncoderLayerConfig {
///     width: 16,
///     heads: 2,
///     hidden: 32,
///     attention: Softmax::default().into(),
///     dropout: 0.1,
///     norm: NormPlacement::Pre,
///     ..Default::default()
/// };
/// let config = TextClassifierConfig::transformer(6, 2, 60, EncoderConfig::new(1, layer));
/// let training = TrainingConfig { learning_rate: 0.01, clip_norm: Some(1.0), ..Default::default() };
/// let mut trainer = Trainer::new(&config, &training, task, Seed::new(1))?;
///
/// let fit = FitConfig { epochs: 20, patience: Some(3), goal: Goal::Highest };
/// let accuracy = |trainer: &Trainer| {
///     Ok::<f64, bochner_models::Error>(1.0 - trainer.assess(others, &classes[150..])?.error)
/// };
/// let mut curves = Curves::default();
/// let best = trainer.fit(&fit, accuracy, &mut [&mut curves])?;
/// assert!(best.value > 0.85, "{best:?}");
/// assert_eq!(curves.epochs[best.epoch - 1].measured, best.value);
///
/// trainer.use_best();
/// assert_eq!(accuracy(&trainer)?, best.value);
/// assert_eq!(trainer.predict(&[vec![]])?.dim(), (1, 2));
/// # Ok::<(), bochner_models::Error>(())
/// ```
pub type Trainer = training::Trainer<Task>;

impl Task {
    /// A task of sentences, their classes, and how they are cut into batches.
    ///
    /// # Errors
    /// [`Error::Argument`] without sentences, or if there is not one class a sentence; [`Error::Text`] for a
    /// sentence that does not fit into a batch.
    pub fn new(
        sentences: Vec<Vec<usize>>,
        classes: Vec<usize>,
        batches: BatchConfig,
    ) -> Result<Self, Error> {
        argument::at_least_one("sentences", sentences.len())?;
        argument::shape("classes", &[sentences.len()], &[classes.len()])?;
        ordered_batches(&lengths(&sentences), &batches)?;
        Ok(Self {
            sentences,
            classes,
            batches,
            word_dropout: 0.0,
        })
    }

    /// The task whose words are taken for unknown ones in training, each with this probability.
    ///
    /// # Errors
    /// [`Error::Argument`] unless the rate is at least 0 and below 1.
    pub fn with_word_dropout(self, rate: f64) -> Result<Self, Error> {
        argument::rate("word_dropout", rate)?;
        Ok(Self {
            word_dropout: rate,
            ..self
        })
    }

    /// The sentences.
    pub fn sentences(&self) -> &[Vec<usize>] {
        &self.sentences
    }

    /// The class of each sentence.
    pub fn classes(&self) -> &[usize] {
        &self.classes
    }
}

/// The lengths of sentences, each with its one side.
pub(super) fn lengths(sentences: &[Vec<usize>]) -> Vec<[usize; 1]> {
    sentences.iter().map(|sentence| [sentence.len()]).collect()
}

/// Takes words for unknown ones, each with the probability `rate`.
fn drop_words(batch: &mut Padded, rate: f64, seed: Seed) {
    if rate == 0.0 {
        return;
    }
    let mut stream = seed.stream("words");
    let sentences = batch.numbers.chunks_mut(batch.width);
    for (sentence, &length) in sentences.zip(&batch.lengths) {
        for word in &mut sentence[..length] {
            if stream.r#gen::<f64>() < rate {
                *word = Vocabulary::UNKNOWN;
            }
        }
    }
}

impl training::Task for Task {
    type Model = TextClassifier<f32>;
    type Config = TextClassifierConfig;
    /// The places of the sentences.
    type Batch = Vec<usize>;
    type Output = Logits<f32, OwnedTape<f32, Cpu>>;

    const MODEL: &'static str = "text_classifier";

    fn model(
        &self,
        config: &TextClassifierConfig,
        seed: Seed,
    ) -> Result<TextClassifier<f32>, Error> {
        for (i, (sentence, &class)) in self.sentences.iter().zip(&self.classes).enumerate() {
            argument::index(format!("class of sentence {i}"), class, config.classes)?;
            for &word in sentence {
                argument::index(format!("sentence {i}"), word, config.words)?;
            }
        }
        let model = TextClassifier::try_new(&Cpu::default(), config, seed)?;
        config.encoder.admit_training()?;
        model.reads(&self.sentences)?;
        Ok(model)
    }

    fn fingerprint(&self) -> String {
        let Self {
            sentences,
            classes,
            batches,
            word_dropout,
        } = self;
        let sizes = batch_numbers(batches).into_iter().chain([sentences.len()]);
        let words = sentences
            .iter()
            .flat_map(|sentence| std::iter::once(sentence.len()).chain(sentence.iter().copied()));
        let numbers = sizes.chain(classes.iter().copied()).chain(words);
        let rate = word_dropout.to_bits();
        let numbers = numbers.map(|number| number as u32);
        fingerprint(numbers.chain([rate as u32, (rate >> 32) as u32]))
    }

    fn batches(&self, next: &mut dyn FnMut() -> Seed) -> Result<Vec<Vec<usize>>, Error> {
        let mut stream = next().stream("batches");
        let lengths = lengths(&self.sentences);
        Ok(shuffled_batches(&lengths, &self.batches, &mut stream)?)
    }

    fn examples(&self, batch: &Vec<usize>) -> usize {
        batch.len()
    }

    fn cut(&self, batch: &Vec<usize>, parts: NonZeroUsize) -> Option<Vec<Vec<usize>>> {
        Some(training::cut(batch, parts))
    }

    fn forward(
        &self,
        model: &TextClassifier<f32>,
        batch: &Vec<usize>,
        gradients: Gradients<f32, Cpu>,
        seed: Seed,
    ) -> Result<Self::Output, Error> {
        let mut batch = padded(&self.sentences, batch, Vocabulary::PADDING)?;
        drop_words(&mut batch, self.word_dropout, seed);
        let pass = model.encoder.training(seed);
        model.apply(tensor(&batch)?.trace(gradients), Some(&batch.lengths), pass)
    }

    fn objective(
        &self,
        model: &TextClassifier<f32>,
        batch: &Vec<usize>,
        classified: Self::Output,
        part: f64,
    ) -> Result<Objective, Error> {
        let classes = batch.iter().map(|&i| self.classes[i]);
        let labelled: Vec<(usize, usize)> = classes.enumerate().collect();
        let kind = model.encoder.penalty();
        let share = kind.share(batch.len(), part, self.sentences.len());
        Objective::of_classes(classified.output, (classified.penalty, share), &labelled)
    }

    fn go_to_step(model: &mut TextClassifier<f32>, step: u64) {
        model.go_to_step(step);
    }
}

impl Trainer {
    /// [`TextClassifier::predict`] by the model as it stands, in evaluation and in batches cut as those of the task.
    ///
    /// # Errors
    /// The errors of [`TextClassifier::predict`].
    pub fn predict(&self, sentences: &[Vec<usize>]) -> Result<Array2<f32>, Error> {
        self.model
            .predict(sentences, &self.task.batches, self.evaluation_pass())
    }

    /// The quality of the logits of sentences in evaluation.
    ///
    /// # Errors
    /// The errors of [`predict`](Self::predict); [`Error::Argument`] unless there is one class for each sentence, which
    /// the model knows.
    pub fn assess(&self, sentences: &[Vec<usize>], classes: &[usize]) -> Result<Assessment, Error> {
        Assessment::of_rows(self.predict(sentences)?.view(), classes)
    }

    /// [`TextClassifier::inspect_sentences`] by the model as it stands, in evaluation: weights of every layer and head,
    /// spectral points and other inner values of the attention.
    ///
    /// What a mechanism draws here it draws from [`evaluation_seed`](Self::evaluation_seed) itself, and for predictions from
    /// one seed for each batch: with a mechanism that draws, use
    /// [`SentenceClassifier::inspect`](super::SentenceClassifier::inspect) to see what the prediction for one sentence came
    /// from. (Published measures of heads rest on the draws of this method.)
    ///
    /// # Errors
    /// The errors of [`TextClassifier::inspect_sentences`].
    pub fn inspect(&self, sentences: &[Vec<usize>]) -> Result<Vec<Inspection<f32>>, Error> {
        self.model
            .inspect_sentences(sentences, self.evaluation_pass())
    }

    /// The model as it stands with the vocabulary that its sentences were numbered by: a classifier that gives for
    /// sentences what the trainer gives, whatever its mechanism draws. After [`fit`](Self::fit) the model is that of the
    /// last epoch; [`use_best`](Self::use_best) first makes it that of the best one.
    ///
    /// # Errors
    /// The errors of [`SentenceClassifier::new`].
    pub fn sentence_classifier(&self, vocabulary: Vocabulary) -> Result<SentenceClassifier, Error> {
        let model = self.model.clone();
        SentenceClassifier::new(model, vocabulary, self.evaluation_seed())?
            .with_batches(self.task.batches.clone())
    }
}
