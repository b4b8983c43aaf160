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
    /// An entry of the case is missing or has a value that is not allowed.
    #[error("the entry `{key}` is {got}; it should be {expected}")]
    Entry {
        /// Its key.
        key: String,
        /// The value that it should have.
        expected: String,
        /// Its value in backticks, or `missing`.
        got: String,
    },
    /// A tensor, or a field of a case of text, is missing.
    #[error("lacks `{tensor}`")]
    Missing {
        /// Its name.
        tensor: String,
    },
    /// A tensor, or a field of a case of text, has no place in this case.
    #[error("holds `{tensor}`, {reason}")]
    Unexpected {
        /// Its name.
        tensor: String,
        /// The reason.
        reason: &'static str,
    },
    /// A tensor has a type, a shape or an element that is not allowed.
    #[error("`{tensor}` {got}; it should {expected}")]
    Tensor {
        /// Its name.
        tensor: String,
        /// The state that it should be in, such as `have shape [2]`.
        expected: String,
        /// The state that it is in, such as `has shape [3]`.
        got: String,
    },
    /// An expected value has no counterpart among our results.
    #[error("asks for `{tensor}`, which this case does not have; check the name")]
    NotComputed {
        /// Its name.
        tensor: String,
    },
    /// A value that must be equal differs.
    #[error("our {name} is {got}, and {expected} was expected")]
    Differs {
        /// Its name in the file.
        name: String,
        /// The value in the file.
        expected: String,
        /// Our value.
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

    /// An entry with another value than it should have; `None` if it is missing.
    pub(crate) fn entry(key: &str, expected: impl Into<String>, got: Option<&str>) -> Self {
        Self::Entry {
            key: key.to_owned(),
            expected: expected.into(),
            got: got.map_or("missing".to_owned(), |got| format!("`{got}`")),
        }
    }

    /// A tensor of another shape than it should have.
    pub(crate) fn shape(tensor: &str, expected: &str, got: &[usize]) -> Self {
        Self::Tensor {
            tensor: tensor.to_owned(),
            expected: format!("have {expected}"),
            got: format!("has shape {got:?}"),
        }
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
