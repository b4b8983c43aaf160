//! The half of a suite that runs: data in memory, and units started on them.

use crate::{Error, Trial};
use bochner_datasets::DataStore;
use bochner_report::check::Check;
use bochner_report::plan::Arm;
use bochner_report::suite::{Experiment, Set};
use bochner_report::{Account, Unit};

/// A table or a figure of the paper that is made of training runs.
///
/// One file declares it; running, resuming, comparing, judging and reporting are shared.
pub trait Suite: Experiment {
    /// Refuses a model that cannot be run on a set, both asked for by name.
    ///
    /// # Errors
    /// The reason.
    fn admits(&self, set: &Set, model: &str) -> Result<(), Error> {
        let _ = (set, model);
        Ok(())
    }

    /// Loads what the units of these arms of one set need.
    ///
    /// # Errors
    /// [`Error::Data`] if a file is missing or wrong: then the set is skipped and the others run.
    fn load(&self, set: &Set, arms: &[Arm], files: &DataStore) -> Result<Box<dyn Source>, Error>;

    /// The checks of scale `smoke`, besides those of every suite: that all units are finished, and that the repeated ones
    /// gave the same bits.
    fn checks(&self, account: &Account<'_>, files: &DataStore) -> Vec<Check>;
}

/// A data set in memory, on which units are started.
pub trait Source: Send + Sync {
    /// Sets up one unit at its beginning.
    ///
    /// # Errors
    /// If the unit cannot be run.
    fn start<'a>(&'a self, unit: &Unit) -> Result<Box<dyn Trial + 'a>, Error>;
}
