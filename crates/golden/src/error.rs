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
    /// One case could not be checked.
    #[error("{}: {fault}", file.display())]
    Case {
        /// Its file.
        file: PathBuf,
        /// Its fault.
        fault: Fault,
    },
}

/// The reason why one case could not be checked, or cannot have passed.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// The file cannot be read.
    #[error("cannot be read: {reason}")]
    Unreadable {
        /// The system's message.
        reason: String,
    },
    /// The file is not a safetensors file.
    #[error("is not a safetensors file, or only a part of one: {reason}")]
    NotSafetensors {
        /// The reader's message.
        reason: String,
    },
    /// A case of text is not JSON, or has other fields than cases of its kind.
    #[error("is not a case of its kind: {reason}")]
    NotJson {
        /// The reader's message.
        reason: String,
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
    /// The corpus that a case is about is not there.
    #[error("{message}")]
    NoCorpus {
        /// The message, which names the file.
        message: String,
    },
    /// An entry of the metadata is missing.
    #[error("the metadata lacks `{key}`, which should be {expected}")]
    MissingEntry {
        /// Its key.
        key: String,
        /// The value that it should have.
        expected: String,
    },
    /// An entry of the metadata has a value that is not allowed.
    #[error("the metadata's `{key}` is `{got}`, which should be {expected}")]
    Entry {
        /// Its key.
        key: String,
        /// The value that it should have.
        expected: String,
        /// Its value.
        got: String,
    },
    /// A tensor is missing.
    #[error("lacks the tensor `{tensor}`")]
    MissingTensor {
        /// Its name.
        tensor: String,
    },
    /// A tensor has no place in this case.
    #[error("holds the tensor `{tensor}`, {reason}")]
    UnexpectedTensor {
        /// Its name.
        tensor: String,
        /// The reason.
        reason: &'static str,
    },
    /// A tensor has elements of the wrong type.
    #[error("`{tensor}` is stored as {got}, which should be {expected}")]
    Dtype {
        /// Its name.
        tensor: String,
        /// The type it should have.
        expected: &'static str,
        /// The type it has.
        got: String,
    },
    /// A tensor has the wrong shape.
    #[error("`{tensor}` has shape {got:?}, which should be {expected}")]
    Shape {
        /// Its name.
        tensor: String,
        /// The shape it should have.
        expected: String,
        /// The shape it has.
        got: Vec<usize>,
    },
    /// A tensor has an element that is not allowed.
    #[error("`{tensor}` holds {got}, where {expected} are allowed")]
    Element {
        /// Its name.
        tensor: String,
        /// The elements that are allowed.
        expected: &'static str,
        /// The element.
        got: String,
    },
    /// An expected tensor has no counterpart among our results.
    #[error("asks for `{tensor}`, which this case does not have; check the name")]
    NotComputed {
        /// Its name.
        tensor: String,
    },
    /// Our result has another shape than the expected one.
    #[error("our `{tensor}` has shape {got:?}, and {expected:?} was expected")]
    ResultShape {
        /// Its name.
        tensor: String,
        /// The shape in the file.
        expected: Vec<usize>,
        /// The shape of our result.
        got: Vec<usize>,
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
    /// An error of our own crates.
    pub(crate) fn refused(error: impl std::fmt::Display) -> Self {
        Self::Refused {
            message: error.to_string(),
        }
    }

    /// A tensor of another shape than it should have.
    pub(crate) fn shape(tensor: &str, expected: impl Into<String>, got: &[usize]) -> Self {
        Self::Shape {
            tensor: tensor.to_owned(),
            expected: expected.into(),
            got: got.to_vec(),
        }
    }
}

/// The end of a computation: a fault of the file, or an error of our own crates.
pub(crate) struct Failure(pub(crate) Fault);

impl<E: std::error::Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let error: Box<dyn std::error::Error> = Box::new(error);
        Self(match error.downcast::<Fault>() {
            Ok(fault) => *fault,
            Err(error) => Fault::refused(error),
        })
    }
}
