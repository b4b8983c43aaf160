//! Models in training, whatever is trained: the trainers of `bochner_models` are such models.

use bochner_models::regressor::LookAhead;
use bochner_models::training::{EpochReport, Task, Trainer};
use bochner_nn::Integrity;
use std::path::Path;

/// The error of any library.
pub type AnyError = Box<dyn std::error::Error>;

/// A model with everything that its next epoch depends on.
pub trait Training {
    /// Trains one epoch.
    ///
    /// # Errors
    /// Whatever ends the training. An [`Error`](crate::Error) of this crate ends the whole run, any other one this unit.
    fn epoch(&mut self) -> Result<EpochReport, AnyError>;

    /// The number of epochs done so far, those before the last [`resume`](Self::resume) included.
    fn epochs_done(&self) -> usize;

    /// The number of trained parameters.
    fn parameters(&self) -> usize;

    /// Writes a checkpoint: everything that the next epoch depends on.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn save(&self, path: &Path) -> Result<(), AnyError>;

    /// Goes on from a checkpoint, so that the next epochs give the same bits.
    ///
    /// # Errors
    /// If the file cannot be read, or is that of another model; the model is then of no further use.
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
