//! The one trial of a model in training, whatever is trained.
//!
//! A suite implements [`Probe`], what it measures, and wraps it with a trainer of `bochner_models` in a [`ModelTrial`]:
//! checkpoints, and errors that name the unit, follow.

use super::{Evaluation, Facts, Findings, Keep, Moment, Rule, Step, failed};
use crate::{Error, Trial};
use bochner_models::regressor::LookAhead;
use bochner_models::training::{EpochReport, Task, Trainer};
use bochner_nn::Integrity;
use bochner_report::Unit;
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
    fn resume(&mut self, path: &Path) -> Result<Integrity, AnyError>;
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

    fn resume(&mut self, path: &Path) -> Result<Integrity, AnyError> {
        Ok(Trainer::resume(self, path)?)
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

    fn resume(&mut self, path: &Path) -> Result<Integrity, AnyError> {
        Ok(LookAhead::resume(self, path)?)
    }
}

/// The measurements of a suite in a model in training, with the data that they need.
pub trait Probe {
    /// The model in training.
    type Model: Training;

    /// The numbers of rows that are trained on, that choose an epoch, and that are tested on.
    fn rows(&self) -> [usize; 3];

    /// Measures the model after an epoch.
    ///
    /// # Errors
    /// Whatever stops the evaluation.
    fn evaluate(&self, model: &Self::Model) -> Result<Evaluation, AnyError>;

    /// The training error of an epoch: the mean squared error unless the model has another one.
    fn training_error(report: &EpochReport) -> f64 {
        report.squared_error
    }

    /// The rule that chooses an epoch and ends the training.
    fn rule(&self) -> Rule {
        Rule::default()
    }

    /// The weights that are kept.
    fn keeps(&self) -> Keep {
        Keep::default()
    }

    /// Inspects the model at the end, or as it was at a moment whose weights are kept; see [`Trial::findings`].
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
    pub(super) unit: Unit,
    pub(super) model: P::Model,
    pub(super) probe: P,
}

impl<P: Probe> ModelTrial<P> {
    /// Sets up a unit; an error of `build` becomes one that names it.
    ///
    /// # Errors
    /// [`Error::Trial`], made from that of `build`.
    pub fn new(
        unit: &Unit,
        build: impl FnOnce() -> Result<(P::Model, P), AnyError>,
    ) -> Result<Self, Error> {
        let (model, probe) = build().map_err(|error| failed(unit, &*error))?;
        let unit = unit.clone();
        Ok(Self { unit, model, probe })
    }

    fn named<T>(&self, result: Result<T, AnyError>) -> Result<T, Error> {
        result.map_err(|error| failed(&self.unit, &*error))
    }
}

impl<P: Probe> Trial for ModelTrial<P> {
    fn facts(&self) -> Facts {
        let [train_rows, validation_rows, test_rows] = self.probe.rows();
        Facts {
            parameters: self.model.parameters(),
            train_rows,
            validation_rows,
            test_rows,
        }
    }

    fn epoch(&mut self) -> Result<Step, Error> {
        let report = self.model.epoch();
        let report = self.named(report)?;
        Ok(Step {
            loss: report.loss,
            mse: P::training_error(&report),
        })
    }

    fn evaluate(&self) -> Result<Evaluation, Error> {
        self.named(self.probe.evaluate(&self.model))
    }

    fn save(&self, path: &Path) -> Result<(), Error> {
        let saved = self.model.save(path);
        saved.map_err(|error| Error::checkpoint(path, &*error))
    }

    fn resume(&mut self, path: &Path) -> Result<(), Error> {
        Error::unless_verified(path, self.model.resume(path))
    }

    fn epochs_done(&self) -> usize {
        self.model.epochs_done()
    }

    fn rule(&self) -> Rule {
        self.probe.rule()
    }

    fn keeps(&self) -> Keep {
        self.probe.keeps()
    }

    fn findings(&self, moment: Moment, stopped: &dyn Fn() -> bool) -> Result<Findings, Error> {
        let found = self.probe.findings(&self.model, moment, stopped);
        found.map_err(|error| match error.downcast() {
            Ok(error) => *error,
            Err(error) => failed(&self.unit, &*error),
        })
    }
}
