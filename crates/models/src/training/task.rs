//! The interface between a trainer and a model with its data.

use crate::Error;
use bochner_nn::Parameters;
use bochner_numerics::Seed;
use dfdx::tensor::{Cpu, Gradients, OwnedTape, Tensor};
use serde::Serialize;
use std::num::NonZeroUsize;

/// A learning task: data, and a model's objective on them.
///
/// Everything random comes from seeds that the [`Trainer`](super::Trainer) hands out, so that a run which was resumed
/// draws what it would have drawn. [`regressor::Task`](crate::regressor::Task),
/// [`node_classifier::Task`](crate::node_classifier::Task) and [`classifier::Task`](crate::classifier::Task) are such
/// tasks.
pub trait Task: Sync {
    /// The model that is trained. The trainer keeps a clone of the best one.
    type Model: Parameters<f32> + Clone + Sync;
    /// The settings of the model.
    type Config: Serialize;
    /// The part of the data that one forward pass reads.
    type Batch: Sync;
    /// The output of a forward pass, on its tape.
    type Output;

    /// The name that the model's settings have in the description of a checkpoint.
    const MODEL: &'static str;

    /// A model with random initial values.
    ///
    /// # Errors
    /// A setting is out of range or does not fit the data.
    fn model(&self, config: &Self::Config, seed: Seed) -> Result<Self::Model, Error>;

    /// A hash of the data, by which a checkpoint of other data is refused.
    fn fingerprint(&self) -> String;

    /// The batches of an epoch, in their order; `next` gives a new seed whenever one is asked for.
    ///
    /// # Errors
    /// The data cannot be cut as the settings ask for.
    fn batches(&self, next: &mut dyn FnMut() -> Seed) -> Result<Vec<Self::Batch>, Error>;

    /// The number of training examples in a batch, or a part of one: its weight in the means over an epoch or a step.
    fn examples(&self, batch: &Self::Batch) -> usize;

    /// A batch cut into parts, as equal as can be; fewer where it has not so many sequences. `None` if a pass reads all
    /// examples together, so that it cannot be cut.
    fn cut(&self, batch: &Self::Batch, parts: NonZeroUsize) -> Option<Vec<Self::Batch>> {
        let _ = (batch, parts);
        None
    }

    /// A forward pass in training, on a tape that adds to these gradients.
    ///
    /// # Errors
    /// The model refuses the batch.
    fn forward(
        &self,
        model: &Self::Model,
        batch: &Self::Batch,
        gradients: Gradients<f32, Cpu>,
        seed: Seed,
    ) -> Result<Self::Output, Error>;

    /// Returns the objective to minimise, without the L2 norm. `part` is the batch's share in the mean that a step
    /// takes over its batches and their parts, 1 for a single batch.
    ///
    /// # Errors
    /// Dfdx has no memory left.
    fn objective(
        &self,
        model: &Self::Model,
        batch: &Self::Batch,
        output: Self::Output,
        part: f64,
    ) -> Result<Objective, Error>;

    /// Returns the parameters whose norm the L2 term takes. Defaults to all parameters.
    fn penalised(model: &Self::Model) -> &dyn Parameters<f32> {
        model
    }

    /// Tells the model that this many steps were taken, for a mechanism that draws something for many steps.
    fn go_to_step(model: &mut Self::Model, step: u64) {
        let _ = (model, step);
    }
}

/// A list of sequences in parts, for [`Task::cut`].
pub(crate) fn cut(examples: &[usize], parts: NonZeroUsize) -> Vec<Vec<usize>> {
    let (n, parts) = (examples.len(), parts.get().min(examples.len()));
    let part = |i| examples[i * n / parts..(i + 1) * n / parts].to_vec();
    (0..parts).map(part).collect()
}

/// The objective of a batch, on the tape of its forward pass, and what it is made of.
#[derive(Debug)]
pub struct Objective {
    /// The sum of the mean error and the penalty's share.
    pub loss: Tensor<(), f32, Cpu, OwnedTape<f32, Cpu>>,
    /// The mean error: squared, or cross-entropy.
    pub error: f64,
    /// The mean squared error; of classes, the Brier score of their probabilities, and 0 where there are so many that it
    /// would take as long as the step: in translation.
    pub squared_error: f64,
    /// The mechanism's penalty, such as $\beta \mathrm{KL}$, not divided.
    pub penalty: f64,
}

/// The means over an epoch. All numbers belong to the passes before the steps, with their dropout.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EpochReport {
    /// The objective.
    pub loss: f64,
    /// The mean error of the training examples: squared, or cross-entropy.
    pub error: f64,
    /// The mean squared error of the training examples; of classes, the Brier score of their probabilities, see
    /// [`Assessment::brier`](crate::assessment::Assessment::brier).
    pub squared_error: f64,
    /// The mechanism's penalty, such as $\beta \mathrm{KL}$, summed over a batch and not divided: the mean over the
    /// batches. In a step of several batches the loss holds the sum of their divergences.
    pub penalty: f64,
    /// The half squared norm of the parameters, with its factor.
    pub l2: f64,
    /// The norm of a step's gradient before it was clipped; 0 if it is not clipped.
    pub gradient_norm: f64,
}

impl EpochReport {
    /// Adds a share of another.
    pub(super) fn add(&mut self, other: &Self, share: f64) {
        let Self {
            loss,
            error,
            squared_error,
            penalty,
            l2,
            gradient_norm,
        } = self;
        for (mean, part) in [
            (loss, other.loss),
            (error, other.error),
            (squared_error, other.squared_error),
            (penalty, other.penalty),
            (l2, other.l2),
            (gradient_norm, other.gradient_norm),
        ] {
            *mean += share * part;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_equal_as_can_be_and_leave_nothing_out() {
        for (n, parts, sizes) in [
            (6, 4, vec![1, 2, 1, 2]),
            (9, 4, vec![2, 2, 2, 3]),
            (64, 2, vec![32, 32]),
            (2, 5, vec![1, 1]),
            (0, 3, vec![]),
        ] {
            let examples: Vec<usize> = (10..10 + n).collect();
            let got = cut(&examples, NonZeroUsize::new(parts).unwrap());
            assert_eq!(got.iter().map(Vec::len).collect::<Vec<_>>(), sizes);
            assert_eq!(got.concat(), examples);
        }
    }
}
