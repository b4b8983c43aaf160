//! Training a translator on batches of pairs of similar length.

use super::{Translator, TranslatorConfig};
use crate::Error;
use crate::embedding::tensor;
use crate::encoder::Encoded;
use crate::fingerprint::{batch_numbers, fingerprint};
use crate::training::{self, Objective};
use bochner_numerics::{Seed, argument};
use bochner_ops::CrossEntropy;
use bochner_text::{
    BatchConfig, Padded, Subwords, Vocabulary, ordered_batches, padded, shuffled_batches,
};
use dfdx::prelude::{AsArray, OwnedTape, Trace};
use dfdx::tensor::{Cpu, Gradients};
use ndarray::ArrayView2;
use std::num::NonZeroUsize;

/// A sequence of tokens and its translation, without marks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pair {
    /// The sequence to translate.
    pub source: Vec<usize>,
    /// The translation.
    pub target: Vec<usize>,
}

impl Pair {
    /// The pairs of the lines of two texts, in subwords as their vocabulary numbers them.
    ///
    /// # Errors
    /// [`Error::Argument`] for texts of unequal numbers of lines.
    pub fn of_lines<S: AsRef<str>>(
        [source, target]: [&[S]; 2],
        subwords: &Subwords,
        vocabulary: &Vocabulary,
    ) -> Result<Vec<Self>, Error> {
        argument::shape("target", &[source.len()], &[target.len()])?;
        let [source, target] = [source, target].map(|lines| {
            let pieces = subwords.encode_all(lines.iter().map(AsRef::as_ref));
            pieces.into_iter().map(|pieces| vocabulary.encode(pieces))
        });
        let pairs = source.zip(target);
        Ok(pairs
            .map(|(source, target)| Self { source, target })
            .collect())
    }
}

/// Pairs from which translation is to be learned.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    pairs: Vec<Pair>,
    batches: BatchConfig,
    smoothing: f64,
}

/// A translator in training, with its data, optimiser and random stream.
///
/// The objective of a batch is the mean cross-entropy of the targets' tokens, their ends included, with label
/// smoothing, plus the attention's penalty ($\beta \mathrm{KL}$ divided by the number of training pairs, or a loss of
/// the batch).
///
/// The example `translate` of this crate trains one on two files of lines, saves it with its subwords as a
/// [`TextTranslator`](super::TextTranslator), loads it and translates.
pub type Trainer = training::Trainer<Task>;

impl Task {
    /// A task of pairs, which are cut into batches by these settings. The length of a target counts its end.
    ///
    /// # Errors
    /// [`Error::Argument`] without pairs; [`Error::Text`] for a pair that does not fit into a batch.
    pub fn new(pairs: Vec<Pair>, batches: BatchConfig) -> Result<Self, Error> {
        argument::at_least_one("pairs", pairs.len())?;
        ordered_batches(&lengths(&pairs), &batches)?;
        Ok(Self {
            pairs,
            batches,
            smoothing: 0.0,
        })
    }

    /// The task with label smoothing; see [`CrossEntropy`].
    ///
    /// # Errors
    /// [`Error::Argument`] unless the share is at least 0 and below 1.
    pub fn with_label_smoothing(self, smoothing: f64) -> Result<Self, Error> {
        argument::rate("smoothing", smoothing)?;
        Ok(Self { smoothing, ..self })
    }

    /// The pairs.
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }
}

/// The lengths of sources and targets as the model reads them: targets with one mark.
fn lengths(pairs: &[Pair]) -> Vec<[usize; 2]> {
    let lengths = pairs
        .iter()
        .map(|pair| [pair.source.len(), pair.target.len() + 1]);
    lengths.collect()
}

/// A batch as the model reads it, and the token behind each token of the targets.
struct Read {
    source: Padded,
    /// The targets behind their start.
    target: Padded,
    /// The rows of the logits that count, each with its token.
    labelled: Vec<(usize, usize)>,
}

impl Task {
    fn read(&self, batch: &[usize], config: &TranslatorConfig) -> Result<Read, Error> {
        let all: Vec<usize> = (0..batch.len()).collect();
        let sources: Vec<_> = batch
            .iter()
            .map(|&i| self.pairs[i].source.clone())
            .collect();
        let targets = batch.iter().map(|&i| &self.pairs[i].target);
        let behind_start = |target: &Vec<usize>| [&[config.start], &target[..]].concat();
        let targets: Vec<_> = targets.map(behind_start).collect();
        let source = padded(&sources, &all, Vocabulary::PADDING)?;
        let target = padded(&targets, &all, Vocabulary::PADDING)?;
        let labelled = targets.iter().enumerate().flat_map(|(b, target)| {
            let next = target[1..].iter().copied().chain([config.end]);
            next.enumerate().map(move |(t, token)| (b, t, token))
        });
        let width = target.width;
        let labelled = labelled
            .map(|(b, t, token)| (b * width + t, token))
            .collect();
        Ok(Read {
            source,
            target,
            labelled,
        })
    }
}

impl Trainer {
    /// The mean cross-entropy of the tokens of pairs, their ends included, in evaluation and without smoothing.
    ///
    /// # Errors
    /// The errors of [`Task::new`] and of [`Translator::apply`].
    pub fn loss(&self, pairs: Vec<Pair>) -> Result<f64, Error> {
        let task = Task::new(pairs, self.task().batches.clone())?;
        let (model, pass) = (self.model(), self.evaluation_pass());
        let (mut total, mut count) = (0.0, 0);
        for batch in ordered_batches(&lengths(&task.pairs), &task.batches)? {
            let read = task.read(&batch, model.config())?;
            let lengths = [&read.source.lengths[..], &read.target.lengths[..]];
            let (source, target) = (tensor(&read.source)?, tensor(&read.target)?);
            let logits = model.apply(source, target, lengths, pass)?.output.as_vec();
            let shape = (
                read.target.lengths.len() * read.target.width,
                model.config().tokens,
            );
            let loss = CrossEntropy {
                labelled: read.labelled,
                smoothing: 0.0,
            };
            let logits = ArrayView2::from_shape(shape, &logits);
            let losses = loss.of_rows(logits.expect("a logit for each token of a position"))?;
            total += losses.iter().sum::<f64>();
            count += losses.len();
        }
        Ok(total / count as f64)
    }
}

impl training::Task for Task {
    type Model = Translator<f32>;
    type Config = TranslatorConfig;
    /// The places of the pairs.
    type Batch = Vec<usize>;
    /// The decoder's output with its penalty, and the rows that have a label, each with its label.
    type Output = (Encoded<f32, OwnedTape<f32, Cpu>>, Vec<(usize, usize)>);

    const MODEL: &'static str = "translator";

    fn model(&self, config: &TranslatorConfig, seed: Seed) -> Result<Translator<f32>, Error> {
        let longest = config.longest;
        for (at, (pair, lengths)) in self.pairs.iter().zip(lengths(&self.pairs)).enumerate() {
            let sides = [("source", &pair.source), ("target", &pair.target)];
            for ((side, tokens), got) in sides.into_iter().zip(lengths) {
                if let Some(&token) = tokens.iter().find(|&&token| token >= config.tokens) {
                    argument::index(format!("{side} of pair {at}"), token, config.tokens)?;
                }
                if got > longest {
                    return Err(Error::PairTooLong {
                        pair: at,
                        side,
                        got,
                        longest,
                    });
                }
            }
        }
        config.admit_training()?;
        Translator::try_new(&Cpu::default(), config, seed)
    }

    fn fingerprint(&self) -> String {
        let Self {
            pairs,
            batches,
            smoothing,
        } = self;
        let sizes = batch_numbers(batches).into_iter().chain([pairs.len()]);
        let sides = pairs.iter().flat_map(|pair| [&pair.source, &pair.target]);
        let tokens = sides.flat_map(|side| std::iter::once(side.len()).chain(side.iter().copied()));
        let numbers = sizes.chain(tokens).map(|number| number as u32);
        let share = smoothing.to_bits();
        fingerprint(numbers.chain([share as u32, (share >> 32) as u32]))
    }

    fn batches(&self, next: &mut dyn FnMut() -> Seed) -> Result<Vec<Vec<usize>>, Error> {
        let mut stream = next().stream("batches");
        Ok(shuffled_batches(
            &lengths(&self.pairs),
            &self.batches,
            &mut stream,
        )?)
    }

    /// The tokens of the targets, their ends included: what the mean of the objective is over.
    fn examples(&self, batch: &Vec<usize>) -> usize {
        batch.iter().map(|&i| self.pairs[i].target.len() + 1).sum()
    }

    fn cut(&self, batch: &Vec<usize>, parts: NonZeroUsize) -> Option<Vec<Vec<usize>>> {
        Some(training::cut(batch, parts))
    }

    fn forward(
        &self,
        model: &Translator<f32>,
        batch: &Vec<usize>,
        gradients: Gradients<f32, Cpu>,
        seed: Seed,
    ) -> Result<Self::Output, Error> {
        let read = self.read(batch, model.config())?;
        let lengths = [&read.source.lengths[..], &read.target.lengths[..]];
        let (source, target) = (tensor(&read.source)?, tensor(&read.target)?);
        let pass = model.training(seed);
        let decoded = model.vectors(source.trace(gradients), target, lengths, pass)?;
        Ok((decoded, read.labelled))
    }

    fn objective(
        &self,
        model: &Translator<f32>,
        batch: &Vec<usize>,
        (decoded, labelled): Self::Output,
        part: f64,
    ) -> Result<Objective, Error> {
        let share = model.penalty()?.share(batch.len(), part, self.pairs.len());
        let loss = CrossEntropy {
            labelled,
            smoothing: self.smoothing,
        };
        let error = model.embedding.cross_entropy(decoded.output, loss)?;
        let reported = [error.array().into(), 0.0];
        Objective::new(error, (decoded.penalty, share), reported)
    }

    fn go_to_step(model: &mut Translator<f32>, step: u64) {
        model.go_to_step(step);
    }
}
