//! The one trial of a model in training, whatever is trained.
//!
//! A suite implements [`Probe`], what it measures, and wraps it with a trainer of `bochner_models` in a [`ModelTrial`]:
//! checkpoints follow.

use super::{Evaluation, Findings, Moment, Step, Trial};
use bochner_models::regressor::LookAhead;
use bochner_models::training::{EpochReport, Task, Trainer};
use bochner_nn::Integrity;
use std::num::NonZeroUsize;
use std::path::Path;

/// The error of any library.
pub type AnyError = Box<dyn std::error::Error>;

/// A model with everything that its next epoch depends on.
pub trait Training {
    /// Trains one epoch.
    ///
    /// # Errors
    /// Whatever ends the training.
    fn epoch(&mut self) -> Result<EpochReport, AnyError>;

    /// The number of epochs done so far.
    fn epochs_done(&self) -> usize;

    /// The number of trained parameters.
    fn parameters(&self) -> usize;

    /// Writes a checkpoint.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn save(&self, path: &Path) -> Result<(), AnyError>;

    /// Goes on from a checkpoint.
    ///
    /// # Errors
    /// If the file cannot be read, or is that of another model.
    fn resume(&mut self, path: &Path) -> Result<(), AnyError>;
}

impl<T: Task> Training for Trainer<T> {
    fn epoch(&mut self) -> Result<EpochReport, AnyError> {
        Ok(Trainer::epoch(self)?)
    }

    fn epochs_done(&self) -> usize {
        Trainer::epochs_done(self)
    }

    fn parameters(&self) -> usize {
        self.parameter_count()
    }

    fn save(&self, path: &Path) -> Result<(), AnyError> {
        Ok(Trainer::save(self, path)?)
    }

    fn resume(&mut self, path: &Path) -> Result<(), AnyError> {
        verified(Trainer::resume(self, path)?)
    }
}

impl Training for LookAhead {
    fn epoch(&mut self) -> Result<EpochReport, AnyError> {
        Ok(LookAhead::epoch(self)?)
    }

    fn epochs_done(&self) -> usize {
        self.trainer().epochs_done()
    }

    fn parameters(&self) -> usize {
        self.trainer().parameter_count()
    }

    fn save(&self, path: &Path) -> Result<(), AnyError> {
        Ok(self.trainer().save(path)?)
    }

    fn resume(&mut self, path: &Path) -> Result<(), AnyError> {
        verified(LookAhead::resume(self, path)?)
    }
}

/// Refuses a checkpoint without the checksum that this program writes.
fn verified(integrity: Integrity) -> Result<(), AnyError> {
    match integrity {
        Integrity::Verified => Ok(()),
        Integrity::Unverified => Err("it has no checksum".into()),
    }
}

/// The measurements of a suite in a model in training, with the data that they need.
pub trait Probe {
    /// The model in training.
    type Model: Training;

    /// See [`Trial::rows`].
    fn rows(&self) -> [usize; 3];

    /// See [`Trial::evaluate`].
    ///
    /// # Errors
    /// Whatever stops the evaluation.
    fn evaluate(&self, model: &Self::Model) -> Result<Evaluation, AnyError>;

    /// The training error of an epoch: the mean squared error unless the model has another one.
    fn training_error(report: &EpochReport) -> f64 {
        report.squared_error
    }

    /// See [`Trial::patience`].
    fn patience(&self) -> Option<NonZeroUsize> {
        None
    }

    /// See [`Trial::inspected`].
    fn inspected(&self) -> &'static [Moment] {
        &[]
    }

    /// See [`Trial::findings`].
    ///
    /// # Errors
    /// Whatever stops the inspection.
    fn findings(
        &self,
        model: &Self::Model,
        moment: Moment,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Findings, AnyError> {
        let _ = (model, moment, stopped);
        Ok(Findings::default())
    }
}

/// A model in training and what is measured in it.
pub struct ModelTrial<P: Probe> {
    /// The model.
    pub model: P::Model,
    /// The measurements.
    pub probe: P,
}

impl<P: Probe> Trial for ModelTrial<P> {
    fn rows(&self) -> [usize; 3] {
        self.probe.rows()
    }

    fn parameters(&self) -> usize {
        self.model.parameters()
    }

    fn epoch(&mut self) -> Result<Step, AnyError> {
        let report = self.model.epoch()?;
        Ok(Step {
            loss: report.loss,
            mse: P::training_error(&report),
        })
    }

    fn epochs_done(&self) -> usize {
        self.model.epochs_done()
    }

    fn evaluate(&self) -> Result<Evaluation, AnyError> {
        self.probe.evaluate(&self.model)
    }

    fn save(&self, path: &Path) -> Result<(), AnyError> {
        self.model.save(path)
    }

    fn resume(&mut self, path: &Path) -> Result<(), AnyError> {
        self.model.resume(path)
    }

    fn patience(&self) -> Option<NonZeroUsize> {
        self.probe.patience()
    }

    fn inspected(&self) -> &'static [Moment] {
        self.probe.inspected()
    }

    fn findings(&self, moment: Moment, stopped: &dyn Fn() -> bool) -> Result<Findings, AnyError> {
        self.probe.findings(&self.model, moment, stopped)
    }
}
