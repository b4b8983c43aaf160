//! What a suite must offer so that its units can be run.

mod early_stopping;

pub use early_stopping::EarlyStopping;

use crate::store::{Artefacts, History};
use crate::{Error, Unit};
use std::path::Path;

/// What one epoch of training reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The training loss.
    pub loss: f64,
    /// The mean square training error; of a classifier that of its probabilities, summed over the
    /// classes (its Brier score).
    pub mse: f64,
}

/// How good a model is after an epoch.
///
/// An error is smaller for a better model: a root mean square error, or the share of nodes that are
/// given a wrong class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evaluation {
    /// The error on the validation part; `None` without one.
    pub validation: Option<f64>,
    /// The loss on the validation part, for a rule that looks at it as well; `None` without.
    pub validation_loss: Option<f64>,
    /// The error on the test part.
    pub test: f64,
}

/// Facts about a trial that do not change while it runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// Numbers that are trained.
    pub parameters: usize,
    /// Rows trained on.
    pub train_rows: usize,
    /// Rows that choose an epoch.
    pub validation_rows: usize,
    /// Rows tested on.
    pub test_rows: usize,
}

/// One unit while it runs.
pub trait Trial {
    /// What does not change.
    fn facts(&self) -> Facts;

    /// Trains one epoch.
    ///
    /// # Errors
    /// Whatever stops the training.
    fn epoch(&mut self) -> Result<Step, Error>;

    /// Measures the model.
    ///
    /// # Errors
    /// Whatever stops the evaluation.
    fn evaluate(&self) -> Result<Evaluation, Error>;

    /// Saves everything that the next epoch depends on.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn save(&self, path: &Path) -> Result<(), Error>;

    /// Goes on from a saved file, so that the next epochs give the same bits.
    ///
    /// # Errors
    /// If the file cannot be read; the trial is then of no further use.
    fn resume(&mut self, path: &Path) -> Result<(), Error>;

    /// Epochs trained so far, those before the last [`resume`](Self::resume) included.
    fn epochs_done(&self) -> usize;

    /// Whether training ends here, before the last epoch of the settings.
    ///
    /// What was measured must decide alone, so that an interrupted run ends where a whole one does.
    fn stops(&self, _history: &History) -> bool {
        false
    }

    /// The epoch that validation chooses, counted from zero; `None` without validation part. It is
    /// the one with the smallest validation error unless a rule of the trial's own says otherwise.
    fn chosen(&self, history: &History) -> Option<usize> {
        history.smallest_validation()
    }

    /// Curves and pictures at the end.
    ///
    /// # Errors
    /// Whatever stops the inspection.
    fn artefacts(&self, history: &History) -> Result<Artefacts, Error> {
        Ok(history.artefacts())
    }
}

/// A table or figure whose units can be run.
pub trait Suite: Sync {
    /// The table of the paper.
    fn table(&self) -> &str;

    /// Sets up one unit at its beginning.
    ///
    /// # Errors
    /// If the unit cannot be run.
    fn start(&self, unit: &Unit) -> Result<Box<dyn Trial + '_>, Error>;
}

impl<S: Suite> Suite for &S {
    fn table(&self) -> &str {
        (**self).table()
    }

    fn start(&self, unit: &Unit) -> Result<Box<dyn Trial + '_>, Error> {
        (**self).start(unit)
    }
}
