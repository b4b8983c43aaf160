//! The suites, one file each.

mod classification;
mod figure4;
mod nodes;
mod regression;

pub use classification::CLASSIFICATION;
pub use figure4::FIGURE_4;
pub use nodes::NODES;
pub use regression::REGRESSION;

use crate::suite::Suite;
use crate::{Assessment, Config, Error, Store, complexity, propositions};
use std::sync::atomic::AtomicBool;

/// A suite that can be asked for by name.
#[derive(Clone, Copy)]
pub enum Entry {
    /// It is made of training runs.
    Trained(&'static dyn Suite),
    /// It is measured in one go.
    Measured(&'static str, Measure),
}

/// Measures a suite in one go and reports on it.
type Measure = fn(&Config, &Store, &AtomicBool) -> Result<Assessment, Error>;

/// All suites, in the order in which they are run: the longest last.
pub const SUITES: [Entry; 6] = [
    Entry::Measured(propositions::SUITE, propositions::run),
    Entry::Measured(complexity::SUITE, complexity::run),
    Entry::Trained(&FIGURE_4),
    Entry::Trained(&NODES),
    Entry::Trained(&CLASSIFICATION),
    Entry::Trained(&REGRESSION),
];

impl Entry {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trained(suite) => suite.card().name,
            Self::Measured(name, _) => name,
        }
    }

    /// The suite, if it is made of training runs.
    pub fn trained(self) -> Option<&'static dyn Suite> {
        match self {
            Self::Trained(suite) => Some(suite),
            Self::Measured(..) => None,
        }
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
pub(crate) mod tests;
