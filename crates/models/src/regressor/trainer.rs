//! Training a regressor, one full-batch step an epoch.

mod new_rows;

use super::{Regressor, RegressorConfig, Task};
use crate::Error;
use crate::descent::{Descent, device_error};
use bochner_attention::{Attention, Draws, Inspection, Pass, Variant};
use bochner_nn::{Integrity, clip_by_norm, mean_squared_error, parameter_count};
use bochner_numerics::parallel::awake;
use bochner_numerics::{Seed, argument};
use bochner_ops::{AdamConfig, Rows};
use dfdx::prelude::{AsArray, HasShape, OwnedTape, ReshapeTo, Trace};
use dfdx::tensor::{Cpu, NoneTape, Tape, Tensor, TensorFromVec};
use dfdx::tensor_ops::{TryAdd, TryMul};
use ndarray::Array1;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Settings of the training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainingConfig {
    /// Adam's learning rate.
    pub learning_rate: f64,
    /// Gradients of a larger norm are scaled down to this one.
    pub clip_norm: f64,
}

impl Default for TrainingConfig {
    /// The settings of the released code: learning rate 0.01, norm at most 1000.
    fn default() -> Self {
        Self {
            learning_rate: 0.01,
            clip_norm: 1000.0,
        }
    }
}

/// The report of one epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EpochReport {
    /// The objective: mean squared error plus the penalty's share.
    pub loss: f64,
    /// The mean squared error of the training rows, before the step.
    pub mse: f64,
    /// The mechanism's penalty, such as $\beta\,\mathrm{KL}$, not divided.
    pub penalty: f64,
    /// The gradient's norm before it was clipped.
    pub gradient_norm: f64,
}

/// A regressor in training, with its data, optimiser and random stream.
///
/// The objective is $\mathrm{MSE} + \beta\,\mathrm{KL} / N_\text{train}$ over the training rows,
/// minimised by Adam in full-batch steps. A penalty that is a loss of the one sequence, such as
/// [`Primal`](bochner_attention::Primal)'s, is not divided. With $\beta < 1$ and the divergence of the one sequence divided
/// by the number of rows, the objective is that of the released code and not strictly a bound.
///
/// ```
/// use bochner_attention::Softmax;
/// use bochner_models::regressor::{RegressorConfig, Task, Trainer, TrainingConfig};
/// use bochner_numerics::Seed;
/// use ndarray::{Array1, Array2};
///
/// let x = Array2::from_shape_fn((20, 1), |(i, _)| i as f32 / 10.0 - 1.0);
/// let y: Array1<f32> = x.column(0).mapv(|x| (2.0 * x).sin());
/// let task = Task::new(x, y, (0..20).filter(|i| i % 4 != 0).collect())?;
/// let config = RegressorConfig::new(1, Softmax {}.into());
/// let mut trainer = Trainer::new(&config, &TrainingConfig::default(), task, Seed::new(1))?;
///
/// let first = trainer.epoch()?.mse;
/// for _ in 0..30 {
///     trainer.epoch()?;
/// }
/// assert!(trainer.epoch()?.mse < 0.5 * first);
/// assert_eq!(trainer.predict()?.len(), 20);
/// # Ok::<(), bochner_models::Error>(())
/// ```
pub struct Trainer {
    model: Regressor<f32>,
    descent: Descent,
    clip_norm: f64,
    rows: Tensor<(usize, usize, usize), f32, Cpu>,
    target: Tensor<(usize,), f32, Cpu>,
    train: Vec<usize>,
    seed: Seed,
    dropout: f64,
    penalty: bochner_attention::Penalty,
    evaluation: Evaluation,
    /// Whether training and evaluation predict alike.
    is_deterministic: bool,
}

/// Predictions with the tape of their forward pass, and the penalty.
pub(super) type Predicted = Attention<Predictions<OwnedTape<f32, Cpu>>, Penalty>;

type Predictions<T> = Tensor<(usize, usize, usize), f32, Cpu, T>;
type Penalty = Tensor<(), f32, Cpu, OwnedTape<f32, Cpu>>;

/// How spectral points are drawn in evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evaluation {
    /// One fixed draw.
    Fixed,
    /// A new draw after every epoch, as the released code has it.
    Fresh,
}

impl Evaluation {
    fn of(attention: &Variant) -> Self {
        match attention.card().draws {
            Draws::InEveryPassAnew => Self::Fresh,
            _ => Self::Fixed,
        }
    }
}

impl Trainer {
    /// A regressor with random initial values and everything to train it.
    ///
    /// # Errors
    /// [`Error::Argument`] if the rows do not have the regressor's number of inputs, or a setting is out of
    /// range.
    pub fn new(
        config: &RegressorConfig,
        training: &TrainingConfig,
        task: Task,
        seed: Seed,
    ) -> Result<Self, Error> {
        let (n, inputs) = task.inputs().dim();
        argument::shape("a row's inputs", &[config.inputs], &[inputs])?;
        let clip = training.clip_norm;
        argument::in_range(clip > 0.0, "clip_norm", clip, "above 0")?;
        let device = Cpu::default();
        let model = Regressor::try_new(&device, config, seed)?;
        let adam = AdamConfig {
            learning_rate: training.learning_rate,
            ..AdamConfig::default()
        };
        let description = serde_json::json!({
            "regressor": config, "training": training, "seed": seed, "task": task.fingerprint(),
        });
        let flat = task.inputs().iter().copied().collect();
        let rows = device
            .try_tensor_from_vec(flat, (1, n, inputs))
            .map_err(device_error)?;
        let target = device
            .try_tensor_from_vec(task.target().to_vec(), (n,))
            .map_err(device_error)?;
        Ok(Self {
            model,
            descent: Descent::new(adam, seed, &description)?,
            clip_norm: training.clip_norm,
            rows,
            target,
            train: task.train().to_vec(),
            seed,
            dropout: config.dropout,
            penalty: config.attention.card().penalty,
            evaluation: Evaluation::of(&config.attention),
            is_deterministic: config.dropout == 0.0
                && config.attention.card().draws == Draws::Nothing,
        })
    }

    /// One full-batch step.
    ///
    /// # Errors
    /// [`Error::Nn`] with `NonFiniteGradient` if the gradient overflowed; nothing is changed then.
    pub fn epoch(&mut self) -> Result<EpochReport, Error> {
        awake(|| self.step(None))
    }

    /// A step from a forward pass at the present parameters, if there is one already.
    pub(super) fn step(&mut self, ahead: Option<Predicted>) -> Result<EpochReport, Error> {
        let pass = Pass::Training {
            seed: self.descent.next_seed(),
            dropout: self.dropout,
        };
        let predicted = match ahead {
            Some(predicted) => predicted,
            None => self.forward(pass)?,
        };
        let penalty = f64::from(predicted.penalty.array());
        let error = self.squared_error(predicted.output)?;
        let mse = f64::from(error.array());
        // All rows are one sequence.
        let share = self.penalty.share(1, self.train.len());
        let weighted = predicted
            .penalty
            .try_mul(share as f32)
            .map_err(device_error)?;
        let loss = error.try_add(weighted).map_err(device_error)?;
        let value = f64::from(loss.array());
        let clip_norm = self.clip_norm;
        let clip = |gradients: &mut _, model: &_| clip_by_norm(gradients, model, clip_norm);
        let gradient_norm = self.descent.step(&mut self.model, loss, clip)?;
        self.model.go_to_step(self.descent.steps());
        Ok(EpochReport {
            loss: value,
            mse,
            penalty,
            gradient_norm,
        })
    }

    /// Predictions with a tape.
    pub(super) fn forward(&mut self, pass: Pass) -> Result<Predicted, Error> {
        let gradients = self.descent.gradients(&self.model)?;
        self.model.apply(self.rows.trace(gradients), pass)
    }

    fn squared_error<T: Tape<f32, Cpu>>(
        &self,
        prediction: Predictions<T>,
    ) -> Result<Tensor<(), f32, Cpu, T>, Error> {
        let n = self.target.shape().0;
        let flat = prediction.try_reshape_like(&(n,)).map_err(device_error)?;
        Ok(mean_squared_error(
            flat,
            self.target.clone(),
            Rows::At(&self.train),
        )?)
    }

    /// Predictions for all rows of the task, in evaluation; for others there is
    /// [`predict_rows`](Self::predict_rows).
    ///
    /// # Errors
    /// The errors of [`Trainer::epoch`], apart from those of the gradient.
    pub fn predict(&self) -> Result<Array1<f32>, Error> {
        let predict = || {
            self.model
                .apply::<NoneTape>(self.rows.clone(), self.evaluation())
        };
        let predicted = awake(predict)?;
        Ok(Array1::from_vec(predicted.output.as_vec()))
    }

    /// Weights, spectral points and other inner values of the attention on all rows, in evaluation.
    ///
    /// # Errors
    /// The errors of [`Trainer::predict`].
    pub fn inspect(&self) -> Result<Inspection<f32>, Error> {
        self.model.inspect(self.rows.clone(), self.evaluation())
    }

    /// The number of trained parameters.
    pub fn parameter_count(&self) -> usize {
        parameter_count(&self.model)
    }

    /// The number of epochs done so far.
    pub fn epochs_done(&self) -> usize {
        self.descent.steps() as usize
    }

    /// The model as it stands. Its `apply` reads one sequence: for predictions, that of the task's rows
    /// and the new ones, as [`predict_rows`](Self::predict_rows) puts it together.
    pub fn model(&self) -> &Regressor<f32> {
        &self.model
    }

    /// Writes a checkpoint: parameters, optimiser, random stream, epochs done.
    ///
    /// # Errors
    /// [`Error::Nn`] if the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        self.descent.save(&self.model, path)
    }

    /// Goes on from a checkpoint: what follows is the same to the bit as if the run had never
    /// stopped. Files of older versions have no checksum and are [`Integrity::Unverified`].
    ///
    /// # Errors
    /// [`Error::Nn`] or [`Error::IncompleteCheckpoint`] if the file is truncated, no checkpoint, of another
    /// version, or of another model, training, seed or task; nothing is changed then.
    pub fn resume(&mut self, path: &Path) -> Result<Integrity, Error> {
        let integrity = self.descent.resume(&mut self.model, path)?;
        self.model.go_to_step(self.descent.steps());
        Ok(integrity)
    }

    /// Whether training and evaluation predict alike.
    pub(super) fn is_deterministic(&self) -> bool {
        self.is_deterministic
    }

    pub(super) fn evaluation(&self) -> Pass {
        let seed = self.seed.child("evaluation");
        Pass::Evaluation {
            seed: match self.evaluation {
                Evaluation::Fixed => seed,
                Evaluation::Fresh => seed.nth(self.descent.steps()),
            },
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
