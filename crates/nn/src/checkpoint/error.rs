//! Errors of checkpoints.

use bochner_numerics::ArgumentError;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The reason that a checkpoint was not written, read or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The file system refused.
    #[error(
        "could not {doing} the checkpoint {}: {source}; check the path{}",
        path.display(),
        if *doing == "write" { " and the free space" } else { "" }
    )]
    Io {
        /// The action that failed, `read` or `write`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },

    /// The file ends too early, or has more bytes than it declares.
    #[error(
        "the checkpoint {} has {got} bytes but declares {expected}; it was cut off or damaged, use \
         an earlier one",
        path.display()
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// The number of bytes declared, as far as the header can be read.
        expected: u64,
        /// The number of bytes there.
        got: u64,
    },

    /// The file's bytes are not those that were written.
    #[error(
        "the checkpoint {} has the checksum {got:016x} but was written with {expected:016x}: it was damaged, \
         use an earlier one",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The checksum in the file.
        expected: u64,
        /// The checksum of its bytes.
        got: u64,
    },

    /// A weight or moment has a value that no training comes to.
    #[error("a checkpoint cannot hold such a value: {0}; go back to an earlier one")]
    Impossible(#[from] ArgumentError),

    /// The file is something else.
    #[error("{} is not a checkpoint of this crate: {reason}", path.display())]
    NotACheckpoint {
        /// The file.
        path: PathBuf,
        /// The evidence for that.
        reason: String,
    },

    /// The file has another version of the format.
    #[error(
        "the checkpoint {} has format version {got}, this program reads version {expected}; use the \
         program that wrote it",
        path.display()
    )]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// The version read here.
        expected: u32,
        /// The file's version.
        got: u64,
    },

    /// The tensors have another element type.
    #[error(
        "{name} in the checkpoint has type {got}, the model has {expected}; build the model in {got}"
    )]
    OtherType {
        /// The tensor's name.
        name: String,
        /// The type asked for.
        expected: &'static str,
        /// The type in the file.
        got: String,
    },

    /// The checkpoint was made of a model described otherwise; the message names the first
    /// difference where both descriptions are JSON objects.
    #[error("{}", difference(expected, got))]
    OtherDescription {
        /// The description of the model to be restored.
        expected: String,
        /// The checkpoint's description.
        got: String,
    },

    /// The model has a parameter that the checkpoint lacks.
    #[error("the checkpoint has no parameter {name}, the model has; build the same model")]
    MissingParameter {
        /// The parameter's name.
        name: String,
    },

    /// The checkpoint has a parameter that the model lacks.
    #[error("the checkpoint has a parameter {name}, the model has not; build the same model")]
    UnknownParameter {
        /// The parameter's name.
        name: String,
    },

    /// The checkpoint has two sets of the model's parameters, as that of a training that keeps its best epoch has.
    #[error(
        "the checkpoint holds two models: a training that keeps its best epoch saves that model too, with `{prefix}.` \
         before its parameters' names; split it with `Checkpoint::split(\"{prefix}\")` and restore one half"
    )]
    SecondModel {
        /// The prefix of the names of its parameters.
        prefix: String,
    },

    /// A parameter has another shape.
    #[error(
        "the parameter {name} has shape {got:?} in the checkpoint and {expected:?} in the model; \
         build the same model"
    )]
    OtherShape {
        /// The parameter's name.
        name: String,
        /// The model's shape.
        expected: Vec<usize>,
        /// The checkpoint's shape.
        got: Vec<usize>,
    },

    /// A size that the shapes do not show is another one, such as the number of heads.
    #[error(
        "`{name}` is {got} in the checkpoint and {expected} in the model; build the same model"
    )]
    OtherSize {
        /// The name of the size.
        name: String,
        /// The model's size.
        expected: usize,
        /// The checkpoint's size.
        got: usize,
    },

    /// A tensor cannot be stored under its name.
    #[error("a parameter cannot be saved under the name {name:?}: {reason}; rename it")]
    UnusableName {
        /// The name.
        name: String,
        /// The reason.
        reason: &'static str,
    },
}

/// A message that names the first difference of two descriptions.
fn difference(expected: &str, got: &str) -> String {
    let object = |description| serde_json::from_str(description).ok();
    let found = object(expected).zip(object(got));
    match found.and_then(|(expected, got)| first_difference(&expected, &got)) {
        Some((name, [expected, got])) => format!(
            "in the checkpoint {name} is {got}, here it is {expected}; \
             go on with what the checkpoint was made with, or start anew"
        ),
        None => format!(
            "the checkpoint is of the model {got:?}, not of {expected:?}; build the same model"
        ),
    }
}

/// The path of the first key, by the alphabet, that two objects differ in, and what stands there. Other crates may
/// have asked serde_json to keep keys in their order.
fn first_difference(
    expected: &Map<String, Value>,
    got: &Map<String, Value>,
) -> Option<(String, [String; 2])> {
    let keys: BTreeSet<&String> = expected.keys().chain(got.keys()).collect();
    let key = (keys.into_iter()).find(|&key| expected.get(key) != got.get(key))?;
    match [expected, got].map(|object| object.get(key)) {
        [Some(Value::Object(expected)), Some(Value::Object(got))] => {
            let (inner, values) = first_difference(expected, got)?;
            Some((format!("{key}.{inner}"), values))
        }
        values => {
            let shown = |value: Option<&Value>| value.map_or("absent".into(), Value::to_string);
            Some((key.clone(), values.map(shown)))
        }
    }
}
