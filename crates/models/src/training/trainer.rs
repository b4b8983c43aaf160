//! The one trainer.

use super::descent::{Descent, Kept, device_error};
use super::hook::GradientHook;
use super::l2::add_l2;
use super::{Best, EpochReport, Objective, Task, TrainingConfig};
use crate::Error;
use bochner_attention::Pass;
use bochner_nn::{
    Checkpoint, CheckpointError, Integrity, Parameters, clip_by_norm, parameter_count,
};
use bochner_numerics::memory::keep_freed_memory;
use bochner_numerics::parallel::{self, awake};
use bochner_numerics::{Seed, argument};
use dfdx::prelude::AsArray;
use dfdx::tensor::{Cpu, Gradients};
use dfdx::tensor_ops::{Backward, TryMul};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::Path;

/// A model in training, with its data, optimiser and random stream.
///
/// The objective of a batch is the mean error, plus the mechanism's penalty ($\beta \mathrm{KL}$ divided by the
/// number of training examples, or a loss of the batch), plus $\tfrac\lambda2 \lVert\theta\rVert^2$; it is
/// minimised by Adam, or by AdamW where the settings have a weight decay. With $\beta < 1$ and a divergence divided by
/// the number of examples, it is that of the paper's released code and not strictly a bound.
///
/// [`epoch`](Self::epoch) goes once through the data. [`fit`](Self::fit) goes through them until a number of epochs is
/// reached or a measure stops improving. [`save`](Self::save) and [`resume`](Self::resume) interrupt either of them and go
/// on.
///
/// # Numerics
/// A step allocates and frees the arrays of the one before. So [`new`](Self::new) asks the allocator to keep freed memory
/// for the rest of the process ([`keep_freed_memory`]): the system then need not fetch and clear the pages again, and a step
/// of a language model of width 128 takes 0.75 times as long. This works only while the process has one thread. A program
/// that starts threads before its first trainer calls `keep_freed_memory` first thing in `main`. On several threads
/// [`parts`](TrainingConfig::parts) cuts batches, so that threads seldom wait for each other.
#[derive(Debug)]
pub struct Trainer<T: Task> {
    pub(crate) model: T::Model,
    pub(crate) descent: Descent,
    pub(crate) task: T,
    pub(crate) seed: Seed,
    training: TrainingConfig,
    pub(super) hook: GradientHook,
    epochs: usize,
    pub(super) best: Option<(Best, T::Model)>,
    /// The step at which the model stands: the optimiser's, or after `use_best` that of the best epoch. What a mechanism
    /// has drawn follows from it.
    pub(crate) stands_at: u64,
}

impl<T: Task> Trainer<T> {
    /// A model with random initial values and everything to train it.
    ///
    /// # Errors
    /// [`Error::Argument`] for a setting that is out of range or does not fit the task, such as several parts of batches that
    /// cannot be cut; [`Error::Attention`] for a mechanism that does not support the masks of the task or dropout on its
    /// weights. A model that is accepted can take a step.
    pub fn new(
        config: &T::Config,
        training: &TrainingConfig,
        task: T,
        seed: Seed,
    ) -> Result<Self, Error> {
        keep_freed_memory();
        training.validate()?;
        let parts = training.parts;
        if parts > NonZeroUsize::MIN {
            let batches = task.batches(&mut || seed)?;
            let fits = batches.iter().all(|batch| task.cut(batch, parts).is_some());
            let allowed = "1 for a model that reads all examples together";
            argument::in_range(fits, "parts", parts.get() as f64, allowed)?;
        }
        let description = json!({
            T::MODEL: config, "training": training, "seed": seed, "task": task.fingerprint(),
        });
        Ok(Self {
            model: task.model(config, seed)?,
            descent: Descent::new(training.adam(), seed, &description)?,
            task,
            seed,
            training: training.clone(),
            hook: GradientHook::default(),
            epochs: 0,
            best: None,
            stands_at: 0,
        })
    }

    /// A trainer that starts from the parameters of a trained model, with a fresh optimiser and no epoch done:
    /// fine-tuning on other data, or with other settings of the training.
    ///
    /// Only the parameters are taken. They must have the names and shapes of those of a model with the settings in
    /// `config`. Everything else, such as dropout, follows `config`.
    ///
    /// ```
    /// use bochner_attention::Softmax;
    /// use bochner_models::regressor::{RegressorConfig, Task, Trainer, TrainingConfig};
    /// use bochner_numerics::Seed;
    /// use bochner_models::ndarray::Array2;
    ///
    /// let task = |slope: f32| {
    ///     let x = Array2::from_shape_fn((20, 1), |(i, _)| i as f32 / 10.0 - 1.0);
    ///     let y = x.column(0).mapv(|x| slope * x);
    ///     Task::new(x, y, (0..20).collect())
    /// };
    /// let (config, training) = (RegressorConfig::new(1, Softmax::default().into()), TrainingConfig::regression());
    /// let mut trained = Trainer::new(&config, &training, task(1.0)?, Seed::new(1))?;
    /// for _ in 0..60 {
    ///     trained.epoch()?;
    /// }
    ///
    /// let mut cold = Trainer::new(&config, &training, task(1.1)?, Seed::new(2))?;
    /// let mut warm = Trainer::from_model(trained.model(), &config, &training, task(1.1)?, Seed::new(2))?;
    /// assert!(warm.epoch()?.error < cold.epoch()?.error);
    /// # Ok::<(), bochner_models::Error>(())
    /// ```
    ///
    /// The run begins at step 0: a mechanism that redraws its features every few steps begins with its first draw.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new); [`Error::Nn`] for a model with other parameters, or with one that is NaN or
    /// infinite.
    pub fn from_model(
        model: &T::Model,
        config: &T::Config,
        training: &TrainingConfig,
        task: T,
        seed: Seed,
    ) -> Result<Self, Error> {
        let mut trainer = Self::new(config, training, task, seed)?;
        Checkpoint::of("", model)
            .restore("", &mut trainer.model)
            .map_err(bochner_nn::Error::from)?;
        Ok(trainer)
    }

    /// Goes once through the training examples.
    ///
    /// # Errors
    /// [`Error::Nn`] with `NonFiniteGradient` if a gradient overflowed; its step changes nothing then.
    pub fn epoch(&mut self) -> Result<EpochReport, Error> {
        awake(|| self.epoch_from(None))
    }

    /// An epoch whose first forward pass, at the present parameters, may be there already.
    pub(crate) fn epoch_from(
        &mut self,
        mut ahead: Option<T::Output>,
    ) -> Result<EpochReport, Error> {
        self.stand_at(self.descent.steps());
        let batches = self.task.batches(&mut || self.descent.next_seed())?;
        let examples = |batches: &[T::Batch], task: &T| {
            let each = batches.iter().map(|batch| task.examples(batch));
            each.sum::<usize>() as f64
        };
        let all = examples(&batches, &self.task);
        let mut report = EpochReport::default();
        for batches in batches.chunks(self.training.accumulate.get()) {
            let share = examples(batches, &self.task) / all;
            report.add(&self.step(batches, &mut ahead)?, share);
        }
        self.epochs += 1;
        Ok(report)
    }

    /// One step down the mean objective of some batches.
    fn step(
        &mut self,
        batches: &[T::Batch],
        ahead: &mut Option<T::Output>,
    ) -> Result<EpochReport, Error> {
        let examples = batches.iter().map(|batch| self.task.examples(batch));
        let all = examples.sum::<usize>() as f64;
        let mut report = EpochReport::default();
        for batch in batches {
            let of_batch = self.task.examples(batch) as f64 / all;
            let seed = self.descent.next_seed();
            let passes = match ahead.take() {
                Some(output) => {
                    backward(&self.task, &self.model, batch, output, all).map(|pass| vec![pass])
                }
                None => self.passes(batch, seed, all),
            };
            // A step that fails leaves no gradients to the next one.
            for pass in passes.inspect_err(|_| self.descent.gradients = None)? {
                // The parts of a batch have means of all but the penalty, which is a sum.
                let penalty = pass.report.penalty * (of_batch / pass.share);
                let of_pass = EpochReport {
                    penalty,
                    ..pass.report
                };
                report.add(&of_pass, pass.share);
                self.descent.add(&self.model, pass.gradients)?;
            }
        }
        let TrainingConfig {
            l2,
            clip_norm,
            schedule,
            learning_rate,
            ..
        } = &self.training;
        let rate = learning_rate * schedule.factor(self.descent.steps() + 1);
        let hook = &mut self.hook;
        self.descent
            .step(&mut self.model, rate, |gradients, model| {
                hook.call(model, gradients)?;
                if *l2 > 0.0 {
                    report.l2 = add_l2(T::penalised(model), gradients, *l2)?;
                }
                if let Some(norm) = *clip_norm {
                    report.gradient_norm = clip_by_norm(model, gradients, norm)?;
                }
                Ok(())
            })?;
        report.loss += report.l2;
        self.stand_at(self.descent.steps());
        Ok(report)
    }

    fn stand_at(&mut self, step: u64) {
        T::go_to_step(&mut self.model, step);
        self.stands_at = step;
    }

    /// The passes forward and backward of a batch in a step over `all` examples: of its parts side by side, where it has
    /// any.
    fn passes(&mut self, batch: &T::Batch, seed: Seed, all: f64) -> Result<Vec<Passed>, Error> {
        let (descent, task, model) = (&mut self.descent, &self.task, &self.model);
        let pass = |batch: &T::Batch, gradients, seed| {
            let output = task.forward(model, batch, gradients, seed)?;
            backward(task, model, batch, output, all)
        };
        let parts = match self.training.parts {
            NonZeroUsize::MIN => None,
            parts => task.cut(batch, parts),
        };
        let Some(parts) = parts else {
            return Ok(vec![pass(batch, descent.gradients(model)?, seed)?]);
        };
        // Gradients of their own, added in order: the bits do not depend on the threads.
        let zeros = parts
            .iter()
            .map(|_| descent.zero_gradients(model).map(Some));
        let mut zeros = zeros.collect::<Result<Vec<_>, _>>()?;
        let passes = parallel::map_chunks(&mut zeros, 1, |i, zeros| {
            let zeros = zeros[0].take().expect("one a part");
            pass(&parts[i], zeros, seed.nth(i as u64))
        });
        passes.into_iter().collect()
    }

    /// The model as it stands.
    pub fn model(&self) -> &T::Model {
        &self.model
    }

    /// The task.
    pub fn task(&self) -> &T {
        &self.task
    }

    /// The number of trained parameters.
    pub fn parameter_count(&self) -> usize {
        parameter_count(&self.model)
    }

    /// The number of epochs done so far.
    pub fn epochs_done(&self) -> usize {
        self.epochs
    }

    /// The number of steps done so far.
    pub fn steps_done(&self) -> usize {
        self.descent.steps() as usize
    }

    /// The seed of the trainer's evaluations. With it in [`Pass::Evaluation`](bochner_attention::Pass::Evaluation), the
    /// model's predictions of the same examples are those of the trainer, whatever its mechanism draws. All evaluations
    /// share it, except the regressor's with a mechanism that makes new draws in each evaluation
    /// ([`Draws::InEveryPassAnew`](bochner_attention::card::Draws)).
    pub fn evaluation_seed(&self) -> Seed {
        self.seed.child("evaluation")
    }

    /// A pass of evaluation that draws from [`evaluation_seed`](Self::evaluation_seed).
    pub(crate) fn evaluation_pass(&self) -> Pass {
        let seed = self.evaluation_seed();
        Pass::Evaluation { seed }
    }

    /// Writes a checkpoint from which [`resume`](Self::resume) goes on: parameters, optimiser, random stream, epochs
    /// done, and the best epoch of [`fit`](Self::fit).
    ///
    /// After `fit` the file holds two models: that of the last epoch under the parameters' own names, and that of the
    /// best epoch with `best.` before them; [`Checkpoint::split`] tells them apart. To use the trained model without
    /// the trainer and its data, save the model: [`sentence_classifier`](Trainer::sentence_classifier) and
    /// [`text_translator`](Trainer::text_translator), or a [`Checkpoint`] of [`model`](Self::model) or
    /// [`best_model`](Self::best_model). Such a checkpoint holds parameters alone: if the model redraws its features
    /// every few steps, set the step by its `go_to_step`.
    ///
    /// # Errors
    /// [`Error::Nn`] if the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let stand = Stand {
            epochs: self.epochs,
            best: self.best(),
            stands_at: self.stands_at,
        };
        let extra = serde_json::to_value(stand).expect("plain data");
        match &self.best {
            None => self.descent.save(&self.model, extra, path),
            Some((_, best)) => {
                let kept = Kept {
                    model: self.model.clone(),
                    best: best.clone(),
                };
                self.descent.save(&kept, extra, path)
            }
        }
    }

    /// The mean of the parameters in several checkpoints of this run, in equal shares, as a model: averages over the
    /// last epochs often translate better than the last alone. The trainer itself stays as it is.
    ///
    /// # Errors
    /// [`Error::Argument`] without checkpoints; the errors of [`resume`](Self::resume).
    pub fn averaged(&self, checkpoints: &[impl AsRef<Path>]) -> Result<T::Model, Error> {
        argument::at_least_one("checkpoints", checkpoints.len())?;
        let share = 1.0 / checkpoints.len() as f64;
        let mut sums: Vec<f64> = Vec::new();
        let mut model = self.model.clone();
        for path in checkpoints {
            model = self.read(path.as_ref())?.kept.model;
            let mut values = Vec::new();
            model.for_each("", &mut |_, parameter| {
                let mut own = Vec::new();
                parameter.read_into(&mut own);
                values.append(&mut own);
            });
            sums.resize(values.len(), 0.0);
            let pairs = sums.iter_mut().zip(values);
            pairs.for_each(|(sum, x)| *sum += share * f64::from(x));
        }
        let mut means = sums.into_iter().map(|mean| mean as f32);
        model.for_each_mut("", &mut |_, parameter| {
            let own: Vec<f32> = means.by_ref().take(parameter.len()).collect();
            parameter.write(&own);
        });
        T::go_to_step(&mut model, self.descent.steps());
        Ok(model)
    }

    /// Goes on from a checkpoint: what follows is the same to the bit as if the run had never
    /// stopped. Files of older versions have no checksum and are [`Integrity::Unverified`].
    ///
    /// # Errors
    /// [`Error::Nn`] or [`Error::IncompleteCheckpoint`] if the file is truncated, no checkpoint, of another
    /// version or of another model, [`Error::AnotherRun`] if it is of another training, seed or task; nothing is changed
    /// then.
    pub fn resume(&mut self, path: &Path) -> Result<Integrity, Error> {
        let Read { kept, stand, saved } = self.read(path)?;
        self.descent.restore(&saved, path)?;
        self.model = kept.model;
        self.epochs = stand.epochs;
        self.best = stand.best.map(|best| {
            let mut model = kept.best;
            T::go_to_step(&mut model, best.steps as u64);
            (best, model)
        });
        self.stand_at(stand.stands_at);
        Ok(saved.integrity())
    }

    /// The parameters in a checkpoint of this run, those of the best epoch where [`fit`](Self::fit) knew one, and the
    /// rest of it.
    fn read(&self, path: &Path) -> Result<Read<T::Model>, Error> {
        let saved = Checkpoint::<f32>::read(path).map_err(bochner_nn::Error::from)?;
        let incomplete = || Error::IncompleteCheckpoint {
            path: path.to_path_buf(),
        };
        saved.adam().ok_or_else(incomplete)?;
        let stand: Result<Stand, _> = serde_json::from_value(saved.progress().extra.clone());
        let stand = stand.map_err(|_| incomplete())?;
        let mut kept = Kept {
            model: self.model.clone(),
            best: self.model.clone(),
        };
        let description = self.descent.description();
        match stand.best {
            Some(_) => saved.restore(description, &mut kept),
            None => saved.restore(description, &mut kept.model),
        }
        .map_err(refused::<T>)?;
        Ok(Read { kept, stand, saved })
    }
}

/// The result of a forward and backward pass.
struct Passed {
    report: EpochReport,
    /// The share of the pass in the means over the step.
    share: f64,
    gradients: Gradients<f32, Cpu>,
}

/// The backward pass of a batch, or of a part of one, in a step over `all` examples.
fn backward<T: Task>(
    task: &T,
    model: &T::Model,
    batch: &T::Batch,
    output: T::Output,
    all: f64,
) -> Result<Passed, Error> {
    let share = task.examples(batch) as f64 / all;
    let Objective {
        mut loss,
        error,
        squared_error,
        penalty,
    } = task.objective(model, batch, output, share)?;
    let report = EpochReport {
        loss: f64::from(loss.array()),
        error,
        squared_error,
        penalty,
        ..EpochReport::default()
    };
    if share != 1.0 {
        loss = loss.try_mul(share as f32).map_err(device_error)?;
    }
    Ok(Passed {
        report,
        share,
        gradients: loss.try_backward().map_err(device_error)?,
    })
}

/// The error of a checkpoint that does not fit. A new run can start from the model of another run if the model's settings
/// are the same.
fn refused<T: Task>(error: CheckpointError) -> Error {
    let is_of_this_model = match &error {
        CheckpointError::OtherDescription { expected, got } => {
            let model = |description: &str| {
                let description: Value = serde_json::from_str(description).unwrap_or_default();
                description.get(T::MODEL).cloned()
            };
            model(expected).is_some() && model(expected) == model(got)
        }
        _ => false,
    };
    match is_of_this_model {
        true => Error::AnotherRun(error),
        false => bochner_nn::Error::from(error).into(),
    }
}

/// A checkpoint that was read.
struct Read<M> {
    kept: Kept<M>,
    stand: Stand,
    saved: Checkpoint<f32>,
}

/// The part of a checkpoint beside parameters, optimiser and random stream.
#[derive(Serialize, Deserialize)]
struct Stand {
    epochs: usize,
    best: Option<Best>,
    /// The step of the parameters, which are those of the best epoch after [`Trainer::use_best`].
    stands_at: u64,
}
