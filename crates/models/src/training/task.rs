//! The interface between a trainer and a model with its data.

use super::device_error;
use crate::Error;
use crate::assessment::{Assessment, array};
use bochner_nn::{Parameters, cross_entropy_of};
use bochner_numerics::Seed;
use dfdx::prelude::AsArray;
use dfdx::tensor::{Cpu, Gradients, OwnedTape, Tensor};
use dfdx::tensor_ops::{TryAdd, TryMul};
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

/// A number on the tape of a pass.
type Scalar = Tensor<(), f32, Cpu, OwnedTape<f32, Cpu>>;

/// The objective of a batch, on the tape of its forward pass, and what it is made of.
#[derive(Debug)]
pub struct Objective {
    /// The sum of the mean error and the penalty's share.
    pub loss: Scalar,
    /// The mean error: squared, or cross-entropy.
    pub error: f64,
    /// The mean squared error; of classes, the Brier score of their probabilities, and 0 where there are so many that it
    /// would take as long as the step: in translation.
    pub squared_error: f64,
    /// The mechanism's penalty, such as $\beta \mathrm{KL}$, not divided.
    pub penalty: f64,
}

impl Objective {
    /// The objective of a mean error and a share of a penalty. Of the error, its value and the squared one are reported.
    pub(crate) fn new(
        error: Scalar,
        (penalty, share): (Scalar, f64),
        [reported, squared_error]: [f64; 2],
    ) -> Result<Self, Error> {
        let value = f64::from(penalty.array());
        let weighted = penalty.try_mul(share as f32).map_err(device_error)?;
        Ok(Self {
            loss: error.try_add(weighted).map_err(device_error)?,
            error: reported,
            squared_error,
            penalty: value,
        })
    }

    /// The objective of logits, `[rows, classes]`, some of whose rows have a class.
    pub(crate) fn of_classes(
        logits: Tensor<(usize, usize), f32, Cpu, OwnedTape<f32, Cpu>>,
        penalty: (Scalar, f64),
        labelled: &[(usize, usize)],
    ) -> Result<Self, Error> {
        let seen = Assessment::of(array(&logits).view(), labelled);
        let error = cross_entropy_of(logits, labelled)?;
        Self::new(error, penalty, [seen.cross_entropy, seen.brier])
    }
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
