//! Errors of a directory of golden cases, and faults of a case.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// An error of the golden checks.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The directory cannot be read.
    #[error("cannot read the directory {}: {source}; check the path", dir.display())]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The directory holds no case.
    #[error(
        "no .safetensors or .json file lies in {}; name the directory that holds the cases themselves",
        dir.display()
    )]
    NoCases {
        /// The directory.
        dir: PathBuf,
    },
}

/// The reason why one case could not be checked, or cannot have passed.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// The file cannot be read, or it is no file of its format.
    #[error("cannot be read as a case: {reason}")]
    Unreadable {
        /// The reader's message.
        reason: String,
    },
    /// No function computes cases of this kind.
    #[error("no function computes `{case}`")]
    NotServed {
        /// The kind.
        case: String,
    },
    /// The corpus that a case is about is not there.
    #[error("`{file}` is not available; name its directory with --data")]
    NoCorpus {
        /// The corpus's file.
        file: String,
    },
    /// An entry, a tensor or a value of the case is not what it should be, or differs from ours.
    #[error("`{name}` is {got}; it should be {expected}")]
    Wrong {
        /// Its name in the file.
        name: String,
        /// The state that it should be in, such as `of shape [2]`.
        expected: String,
        /// The state that it is in, such as `of shape [3]`.
        got: String,
    },
    /// Our own code refused the inputs.
    #[error("our code refused the inputs: {message}")]
    Refused {
        /// Its message.
        message: String,
    },
    /// Our own code panicked.
    #[error("our code panicked, which is a defect of ours; the message is on standard error")]
    Panicked,
}

impl Fault {
    /// A file that is not of its format.
    pub(crate) fn unreadable(error: impl std::fmt::Display) -> Self {
        Self::Unreadable {
            reason: error.to_string(),
        }
    }

    /// Something of this name that is not what it should be.
    pub(crate) fn wrong(name: &str, expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self::Wrong {
            name: name.to_owned(),
            expected: expected.into(),
            got: got.into(),
        }
    }

    /// An entry with another value than it should have; `None` if it is missing.
    pub(crate) fn entry(key: &str, expected: impl Into<String>, got: Option<&str>) -> Self {
        let got = got.map_or("missing".to_owned(), |got| format!("`{got}`"));
        Self::wrong(key, expected, got)
    }

    /// A tensor of another shape than it should have.
    pub(crate) fn shape(tensor: &str, expected: &str, got: &[usize]) -> Self {
        Self::wrong(tensor, expected, format!("of shape {got:?}"))
    }

    /// An expected value without a counterpart among our results.
    pub(crate) fn not_computed(name: &str) -> Self {
        Self::wrong(name, "a result of this case; check the name", "expected")
    }

    /// The fault that ended a computation: one of the file, or an error of our own crates.
    pub(crate) fn of(failure: Failure) -> Self {
        let refused = |error: Failure| Self::Refused {
            message: error.to_string(),
        };
        let fault = failure.downcast::<Self>();
        fault.map_or_else(refused, |fault| *fault)
    }
}

/// The end of a computation: a [`Fault`] of the file, or an error of our own crates.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;
