//! The errors that occur while rows are read and pages are written.

use std::io;
use std::panic::Location;
use std::path::{Path, PathBuf};

/// An error of this crate.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}; check the path", path.display())]
    Io {
        /// The action: "read" or "write".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The answer of the system.
        source: io::Error,
    },
    /// A line of an archive is no row of a finished unit, or not what a unit with a row has left.
    #[error(
        "cannot read line {line} of {}: {reason}; name a directory with the `rows.jsonl` of a suite of training runs, \
         and with the `artefacts.jsonl` that was written beside it or none",
        path.display()
    )]
    Archive {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The fault.
        reason: String,
    },
    /// A claim of a suite names a model or a set that no arm of the suite has.
    #[error(
        "claim {claim} of the suite {suite} names {unknown}, which no arm has at any scale; correct the name in the \
         claim at {}, line {}, or add the arm. Models, and sets by their titles: {known}",
        place.file(),
        place.line()
    )]
    UnknownInClaim {
        /// The suite.
        suite: &'static str,
        /// The claim.
        claim: &'static str,
        /// The line that makes the claim.
        place: &'static Location<'static>,
        /// The name.
        unknown: &'static str,
        /// The names that there are.
        known: String,
    },
    /// The card of a suite contradicts itself.
    #[error("the card of the suite {suite:?} cannot be run: {fault}")]
    Card {
        /// The suite.
        suite: &'static str,
        /// The fault.
        fault: String,
    },
    /// A scale that does not exist.
    #[error("the scale was given as {given:?}; expected smoke, desk or paper")]
    UnknownScale {
        /// The given name.
        given: String,
    },
}

impl Error {
    /// An [`Error::Io`] made from the answer of the system.
    pub(crate) fn io(
        action: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
