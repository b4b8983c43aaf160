//! Learning what comes next from event sequences.

use super::{NextEvent, NextEventConfig};
use crate::Error;
use crate::assessment::{Assessment, array};
use crate::embedding::tensor;
use crate::encoder::Logits;
use crate::fingerprint::{batch_numbers, fingerprint};
use crate::training::{self, Objective};
use bochner_attention::mechanism::Inspection;
use bochner_numerics::parallel::awake;
use bochner_numerics::{Seed, argument};
use bochner_text::{BatchConfig, Vocabulary, ordered_batches, padded, shuffled_batches};
use dfdx::prelude::{OwnedTape, Trace};
use dfdx::tensor::{Cpu, Gradients, Tensor};
use ndarray::{Array2, s};
use std::num::NonZeroUsize;

/// Events in their order, at least two: all but the last one are read, all but the first one are foretold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Events {
    /// The kind of each event.
    pub kinds: Vec<usize>,
    /// The time of each event.
    pub times: Vec<f64>,
}

/// Event sequences whose next events are to be learned.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    sequences: Vec<Events>,
    batches: BatchConfig,
}

/// A model of next events in training, with its data, optimiser and random stream.
///
/// The objective of a batch is the mean cross-entropy of all events but the first of each sequence, plus the attention's
/// penalty ($\beta \mathrm{KL}$ divided by the number of sequences, or a loss of the batch).
pub type Trainer = training::Trainer<Task>;

/// The quality of the predictions of next events.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Foretold {
    /// The quality on all events except the first of each sequence.
    pub all: Assessment,
    /// The quality on the last event of each sequence.
    pub last: Assessment,
}

impl Task {
    /// A task of sequences, and how they are cut into batches.
    ///
    /// # Errors
    /// [`Error::Argument`] without sequences, for one of fewer than two events, another number of times than of events, and
    /// a time that is not finite; [`Error::Text`] for a sequence that does not fit into a batch.
    pub fn new(sequences: Vec<Events>, batches: BatchConfig) -> Result<Self, Error> {
        argument::at_least_one("sequences", sequences.len())?;
        for (i, Events { kinds, times }) in sequences.iter().enumerate() {
            let (name, count) = (format!("events of sequence {i}"), kinds.len());
            argument::in_range(count > 1, name, count as f64, "at least 2")?;
            argument::shape(format!("times of sequence {i}"), &[count], &[times.len()])?;
            argument::finite(format!("times of sequence {i}"), &[count], times)?;
        }
        ordered_batches(&lengths(&sequences), &batches)?;
        Ok(Self { sequences, batches })
    }

    /// The sequences.
    pub fn sequences(&self) -> &[Events] {
        &self.sequences
    }

    fn read(&self, batch: &[usize]) -> Result<Read, Error> {
        let chosen = || batch.iter().map(|&i| &self.sequences[i]);
        let past = |own: &Events| own.kinds[..own.kinds.len() - 1].to_vec();
        let kinds: Vec<Vec<usize>> = chosen().map(past).collect();
        let all: Vec<usize> = (0..kinds.len()).collect();
        let read = padded(&kinds, &all, Vocabulary::PADDING)?;
        let shape = (batch.len(), read.width);
        let mut times = Array2::zeros(shape);
        let mut labelled = Vec::new();
        for (b, Events { kinds, times: own }) in chosen().enumerate() {
            for (t, &time) in own[..own.len() - 1].iter().enumerate() {
                times[[b, t]] = time;
                labelled.push((b * read.width + t, kinds[t + 1]));
            }
        }
        Ok(Read {
            kinds: tensor(&read)?,
            times,
            lengths: read.lengths,
            labelled,
        })
    }
}

/// Sequences as the model reads them: without their last events.
struct Read {
    kinds: Tensor<(usize, usize), usize, Cpu>,
    times: Array2<f64>,
    lengths: Vec<usize>,
    /// The rows of the logits that count, each with the kind that comes next.
    labelled: Vec<(usize, usize)>,
}

/// The numbers of events that are read.
fn lengths(sequences: &[Events]) -> Vec<[usize; 1]> {
    let lengths = sequences.iter().map(|own| [own.kinds.len() - 1]);
    lengths.collect()
}

impl Trainer {
    /// The logits of what comes next behind each event but the last of sequences, `[T - 1, kinds]` each, in evaluation.
    ///
    /// # Errors
    /// The errors of [`Task::new`] and of [`NextEvent::apply`].
    pub fn predict(&self, sequences: &[Events]) -> Result<Vec<Array2<f32>>, Error> {
        let task = Task::new(sequences.to_vec(), self.task().batches.clone())?;
        let pass = self.evaluation_pass();
        awake(|| {
            let mut all = vec![Array2::zeros((0, 0)); sequences.len()];
            for batch in ordered_batches(&lengths(sequences), &task.batches)? {
                let Read {
                    kinds,
                    times,
                    lengths,
                    ..
                } = task.read(&batch)?;
                let width = times.ncols();
                let logits = self.model().apply(kinds, times, &lengths, pass)?.output;
                let logits = array(&logits);
                for ((place, b), length) in batch.into_iter().zip(0..).zip(lengths) {
                    let own = logits.slice(s![b * width..b * width + length, ..]);
                    all[place] = own.to_owned();
                }
            }
            Ok(all)
        })
    }

    /// Weights of every layer and head, and other inner values of the attention on some sequences without their last
    /// events, which are padded to the longest of them, in evaluation.
    ///
    /// # Errors
    /// The errors of [`predict`](Self::predict).
    pub fn inspect(&self, sequences: &[Events]) -> Result<Vec<Inspection<f32>>, Error> {
        let task = Task::new(sequences.to_vec(), self.task().batches.clone())?;
        let places: Vec<usize> = (0..sequences.len()).collect();
        let read = task.read(&places)?;
        let pass = self.evaluation_pass();
        self.model()
            .inspect(read.kinds, read.times, &read.lengths, pass)
    }

    /// Assesses the predictions of the next events of sequences, in evaluation.
    ///
    /// # Errors
    /// The errors of [`predict`](Self::predict); [`Error::Argument`] for a kind that the model does not have.
    pub fn assess(&self, sequences: &[Events]) -> Result<Foretold, Error> {
        let logits = self.predict(sequences)?;
        let views: Vec<_> = logits.iter().map(|own| own.view()).collect();
        let all = ndarray::concatenate(ndarray::Axis(0), &views);
        let all = all.expect("as many columns as there are kinds");
        let next = sequences.iter().flat_map(|own| &own.kinds[1..]);
        let next: Vec<usize> = next.copied().collect();
        let mut end = 0;
        let ends = sequences.iter().map(|own| {
            end += own.kinds.len() - 1;
            end - 1
        });
        let ends: Vec<usize> = ends.collect();
        let last: Vec<usize> = ends.iter().map(|&row| next[row]).collect();
        let rows = all.select(ndarray::Axis(0), &ends);
        Ok(Foretold {
            all: Assessment::of_rows(all.view(), &next)?,
            last: Assessment::of_rows(rows.view(), &last)?,
        })
    }
}

impl training::Task for Task {
    type Model = NextEvent<f32>;
    type Config = NextEventConfig;
    /// The places of the sequences.
    type Batch = Vec<usize>;
    /// The logits with the penalty, and the rows that count with their kinds.
    type Output = (Logits<f32, OwnedTape<f32, Cpu>>, Vec<(usize, usize)>);

    const MODEL: &'static str = "next_event";

    fn model(&self, config: &NextEventConfig, seed: Seed) -> Result<NextEvent<f32>, Error> {
        for (i, own) in self.sequences.iter().enumerate() {
            for &kind in &own.kinds {
                argument::index(format!("kinds of sequence {i}"), kind, config.kinds)?;
            }
        }
        config.encoder.admit_training()?;
        NextEvent::try_new(&Cpu::default(), config, seed)
    }

    fn fingerprint(&self) -> String {
        let Self { sequences, batches } = self;
        let sizes = batch_numbers(batches).into_iter().chain([sequences.len()]);
        let sizes = sizes.map(|size| size as u32);
        let numbers = sequences.iter().flat_map(|Events { kinds, times }| {
            let kinds = std::iter::once(kinds.len()).chain(kinds.iter().copied());
            let bits = times.iter().map(|time| time.to_bits());
            let halves = bits.flat_map(|bits| [bits as u32, (bits >> 32) as u32]);
            kinds.map(|kind| kind as u32).chain(halves)
        });
        fingerprint(sizes.chain(numbers))
    }

    fn batches(&self, next: &mut dyn FnMut() -> Seed) -> Result<Vec<Vec<usize>>, Error> {
        let mut stream = next().stream("batches");
        let lengths = lengths(&self.sequences);
        Ok(shuffled_batches(&lengths, &self.batches, &mut stream)?)
    }

    /// The events that are foretold: what the mean of the objective is over.
    fn examples(&self, batch: &Vec<usize>) -> usize {
        let counts = batch.iter().map(|&i| self.sequences[i].kinds.len() - 1);
        counts.sum()
    }

    fn cut(&self, batch: &Vec<usize>, parts: NonZeroUsize) -> Option<Vec<Vec<usize>>> {
        Some(training::cut(batch, parts))
    }

    fn forward(
        &self,
        model: &NextEvent<f32>,
        batch: &Vec<usize>,
        gradients: Gradients<f32, Cpu>,
        seed: Seed,
    ) -> Result<Self::Output, Error> {
        let read = self.read(batch)?;
        let pass = model.encoder.training(seed);
        let kinds = read.kinds.trace(gradients);
        let foretold = model.apply(kinds, read.times, &read.lengths, pass)?;
        Ok((foretold, read.labelled))
    }

    fn objective(
        &self,
        model: &NextEvent<f32>,
        batch: &Vec<usize>,
        (foretold, labelled): Self::Output,
        part: f64,
    ) -> Result<Objective, Error> {
        let kind = model.encoder.penalty();
        let share = kind.share(batch.len(), part, self.sequences.len());
        Objective::of_classes(foretold.output, (foretold.penalty, share), &labelled)
    }

    fn go_to_step(model: &mut NextEvent<f32>, step: u64) {
        model.go_to_step(step);
    }
}
