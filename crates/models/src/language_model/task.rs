//! Learning to continue one long text.

use super::{LanguageModel, LanguageModelConfig};
use crate::Error;
use crate::embedding::tensor;
use crate::encoder::Encoded;
use crate::fingerprint::fingerprint;
use crate::training::{self, Objective};
use bochner_numerics::parallel::awake;
use bochner_numerics::{Seed, argument};
use bochner_ops::CrossEntropy;
use bochner_text::{Padded, Vocabulary, padded};
use dfdx::prelude::{AsArray, OwnedTape, Trace};
use dfdx::tensor::{Cpu, Gradients};
use rand::Rng;
use rand::seq::SliceRandom;
use std::num::NonZeroUsize;
use std::ops::Range;

/// A text whose next tokens are to be learned, and how it is cut into windows.
///
/// Each epoch cuts it at other random places. Every token after the first is foretold once, from the tokens before it in
/// its window.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    tokens: Vec<usize>,
    context: usize,
    windows: usize,
}

/// A language model in training, with its text, optimiser and random stream.
///
/// The objective of a batch is the mean cross-entropy of its tokens, in nats, plus the attention's penalty ($\beta
/// \mathrm{KL}$ divided by the number of windows of the text, or a loss of the batch).
pub type Trainer = training::Trainer<Task>;

impl Task {
    /// A task of a text, the most tokens that are read at a time, and the number of windows in a batch.
    ///
    /// # Errors
    /// [`Error::Argument`] for a text of fewer than two tokens, and for a context or a batch of 0.
    pub fn new(tokens: Vec<usize>, context: usize, windows: usize) -> Result<Self, Error> {
        let count = tokens.len();
        argument::in_range(count > 1, "tokens of the text", count as f64, "at least 2")?;
        argument::at_least_one("context", context)?;
        argument::at_least_one("windows", windows)?;
        Ok(Self {
            tokens,
            context,
            windows,
        })
    }

    /// The text.
    pub fn tokens(&self) -> &[usize] {
        &self.tokens
    }

    /// The windows of tokens that are read, the first of which has `first` tokens, at most the context.
    fn cut_at(&self, first: usize) -> Vec<Range<usize>> {
        let read = self.tokens.len() - 1;
        let others = (first..read).step_by(self.context);
        let others = others.map(|start| start..read.min(start + self.context));
        std::iter::once(0..first.min(read)).chain(others).collect()
    }

    /// The number of windows of the text.
    fn count(&self) -> usize {
        (self.tokens.len() - 1).div_ceil(self.context)
    }

    /// The tokens of some windows, and the rows of the output with the tokens behind theirs.
    fn read(&self, windows: &[Range<usize>]) -> Result<(Padded, Vec<(usize, usize)>), Error> {
        let own = windows
            .iter()
            .map(|window| self.tokens[window.clone()].to_vec());
        let own: Vec<Vec<usize>> = own.collect();
        let all: Vec<usize> = (0..own.len()).collect();
        let read = padded(&own, &all, Vocabulary::PADDING)?;
        let rows = windows.iter().enumerate().flat_map(|(b, window)| {
            let first = b * read.width;
            (window.clone().zip(first..)).map(|(at, row)| (row, self.tokens[at + 1]))
        });
        let labelled = rows.collect();
        Ok((read, labelled))
    }
}

impl Trainer {
    /// The mean cross-entropy of all tokens of a text but the first, in nats, in evaluation: each is foretold from the
    /// tokens of its window before it, windows being as long as the context. Divided by $\ln 2$, bits a token.
    ///
    /// # Errors
    /// The errors of [`Task::new`] and of [`LanguageModel::apply`].
    pub fn assess(&self, tokens: &[usize]) -> Result<f64, Error> {
        let &Task {
            context, windows, ..
        } = self.task();
        let task = Task::new(tokens.to_vec(), context, windows)?;
        let pass = self.evaluation_pass();
        let (mut total, model) = (0.0, self.model());
        awake(|| {
            for batch in task.cut_at(context).chunks(windows) {
                let (read, labelled) = task.read(batch)?;
                let encoded = model.vectors(tensor(&read)?, &read.lengths, pass)?;
                let count = labelled.len() as f64;
                let loss = CrossEntropy {
                    labelled,
                    smoothing: 0.0,
                };
                let mean = model.embedding.cross_entropy(encoded.output, loss)?;
                total += f64::from(mean.array()) * count;
            }
            Ok(total / (task.tokens.len() - 1) as f64)
        })
    }
}

impl training::Task for Task {
    type Model = LanguageModel<f32>;
    type Config = LanguageModelConfig;
    /// The windows that are read.
    type Batch = Vec<Range<usize>>;
    /// The vectors with the penalty, and the rows that count with their tokens.
    type Output = (Encoded<f32, OwnedTape<f32, Cpu>>, Vec<(usize, usize)>);

    const MODEL: &'static str = "language_model";

    fn model(&self, config: &LanguageModelConfig, seed: Seed) -> Result<LanguageModel<f32>, Error> {
        for &token in &self.tokens {
            argument::index("tokens of the text", token, config.tokens)?;
        }
        let model = LanguageModel::try_new(&Cpu::default(), config, seed)?;
        config.encoder.admit_training()?;
        model
            .embedding
            .fits(self.context.min(self.tokens.len() - 1))?;
        Ok(model)
    }

    fn fingerprint(&self) -> String {
        let sizes = [self.context, self.windows];
        let numbers = sizes.iter().chain(&self.tokens);
        fingerprint(numbers.map(|&number| number as u32))
    }

    fn batches(&self, next: &mut dyn FnMut() -> Seed) -> Result<Vec<Self::Batch>, Error> {
        let mut stream = next().stream("windows");
        let mut windows = self.cut_at(stream.gen_range(1..=self.context));
        windows.shuffle(&mut stream);
        Ok(windows.chunks(self.windows).map(<[_]>::to_vec).collect())
    }

    /// The tokens that are foretold: what the mean of the objective is over.
    fn examples(&self, batch: &Self::Batch) -> usize {
        batch.iter().map(Range::len).sum()
    }

    fn cut(&self, batch: &Self::Batch, parts: NonZeroUsize) -> Option<Vec<Self::Batch>> {
        let places: Vec<usize> = (0..batch.len()).collect();
        let parts = training::cut(&places, parts).into_iter();
        let part = |places: Vec<usize>| places.into_iter().map(|i| batch[i].clone()).collect();
        Some(parts.map(part).collect())
    }

    fn forward(
        &self,
        model: &LanguageModel<f32>,
        batch: &Self::Batch,
        gradients: Gradients<f32, Cpu>,
        seed: Seed,
    ) -> Result<Self::Output, Error> {
        let (read, labelled) = self.read(batch)?;
        let pass = model.encoder.training(seed);
        let tokens = tensor(&read)?.trace(gradients);
        Ok((model.vectors(tokens, &read.lengths, pass)?, labelled))
    }

    fn objective(
        &self,
        model: &LanguageModel<f32>,
        batch: &Self::Batch,
        (encoded, labelled): Self::Output,
        part: f64,
    ) -> Result<Objective, Error> {
        let kind = model.encoder.penalty();
        let share = kind.share(batch.len(), part, self.count());
        let loss = CrossEntropy {
            labelled,
            smoothing: 0.0,
        };
        let error = model.embedding.cross_entropy(encoded.output, loss)?;
        let reported = [error.array().into(), 0.0];
        Objective::new(error, (encoded.penalty, share), reported)
    }

    fn go_to_step(model: &mut LanguageModel<f32>, step: u64) {
        model.go_to_step(step);
    }
}
