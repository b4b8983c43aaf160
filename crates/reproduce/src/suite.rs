//! The suites that are made of training runs.

use crate::trial::AnyError;
use crate::{Error, Trial};
use bochner_datasets::DataStore;
use bochner_report::Unit;
use bochner_report::check::Check;
use bochner_report::plan::Arm;
use bochner_report::suite::{Card, Set};
use std::fmt;

/// A table or a figure that is made of training runs.
///
/// One file declares it; running, resuming, comparing, judging and reporting are shared.
#[derive(Clone, Copy)]
pub struct Suite {
    /// Its names, numbers, texts, arms and claims.
    pub card: &'static Card,
    /// Loads what the units of these arms of one set need; see [`Load`].
    pub load: Load,
    /// The checks of scale `smoke`, besides that of every suite: that all units are finished.
    pub checks: &'static [Check],
    /// Refuses a model that cannot be run on a set, both asked for by name.
    pub admits: fn(&Set, &str) -> Result<(), Error>,
}

/// Loads what the units of some arms of one set need.
///
/// # Errors
/// [`Error::Data`] if a file is missing or wrong: then the set is skipped and the others run.
pub type Load = fn(&Set, &[Arm], &DataStore) -> Result<Box<dyn Source>, Error>;

impl Suite {
    /// A suite all of whose models run on all of its sets.
    pub const fn new(card: &'static Card, load: Load, checks: &'static [Check]) -> Self {
        Self {
            card,
            load,
            checks,
            admits: |_, _| Ok(()),
        }
    }
}

impl fmt::Debug for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.card.name)
    }
}

/// A data set in memory, on which units are started.
pub trait Source: Send + Sync {
    /// Sets up one unit at its beginning.
    ///
    /// # Errors
    /// If the unit cannot be run.
    fn start<'a>(&'a self, unit: &Unit) -> Result<Box<dyn Trial + 'a>, AnyError>;
}
