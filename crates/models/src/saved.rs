//! A model together with what it reads and writes, in one file: a checkpoint without an optimiser.

use crate::Error;
use bochner_nn::{Checkpoint, Parameters, Progress};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// A kind of model file.
pub(crate) struct Kind {
    /// The name that the model's settings have in the description of the checkpoint.
    pub(crate) name: &'static str,
    /// The contents of the file, for messages.
    pub(crate) what: &'static str,
    /// The type that writes such files.
    pub(crate) writer: &'static str,
    /// The name that the model's settings have in the checkpoint of a training.
    pub(crate) trained_as: &'static str,
    /// The method of a trainer that makes a value of that type.
    pub(crate) method: &'static str,
}

impl Kind {
    /// Writes a model that stands at a step, its settings, and the parts beside it.
    pub(crate) fn write(
        &self,
        path: &Path,
        (model, step): (&impl Parameters<f32>, u64),
        config: &impl Serialize,
        parts: &impl Serialize,
    ) -> Result<(), Error> {
        let description = BTreeMap::from([(self.name, config)]);
        let description = serde_json::to_string(&description).expect("plain data");
        let progress = Progress {
            step,
            extra: serde_json::to_value(parts).expect("plain data"),
            ..Progress::default()
        };
        Checkpoint::of(description, model)
            .with_progress(progress)
            .write(path)
            .map_err(bochner_nn::Error::from)?;
        Ok(())
    }

    /// Reads a file: the model's settings C and the parts P, before there is a model.
    pub(crate) fn read<C: DeserializeOwned, P: DeserializeOwned>(
        &self,
        path: &Path,
    ) -> Result<Read<C, P>, Error> {
        let checkpoint = Checkpoint::<f32>::read(path).map_err(bochner_nn::Error::from)?;
        let described: Value =
            serde_json::from_str(checkpoint.description()).unwrap_or(Value::Null);
        if checkpoint.adam().is_some() && described.get(self.trained_as).is_some() {
            return Err(Error::TrainingRun {
                path: path.to_path_buf(),
                what: self.what,
                method: self.method,
            });
        }
        let foreign = |reason: String| Error::OtherContents {
            path: path.to_path_buf(),
            what: self.what,
            reason,
            writer: self.writer,
        };
        let names = described.as_object().filter(|names| names.len() == 1);
        let config = names
            .and_then(|names| names.get(self.name))
            .ok_or_else(|| foreign(format!("its description is not of a `{}`", self.name)))?;
        let config = serde_json::from_value(config.clone());
        let parts = serde_json::from_value(checkpoint.progress().extra.clone());
        Ok(Read {
            config: config.map_err(|error| foreign(error.to_string()))?,
            parts: parts.map_err(|error| foreign(error.to_string()))?,
            checkpoint,
        })
    }
}

/// The contents of a model file.
pub(crate) struct Read<C, P> {
    pub(crate) config: C,
    pub(crate) parts: P,
    checkpoint: Checkpoint<f32>,
}

impl<C, P> Read<C, P> {
    /// Puts the parameters into a model that was built with the settings, and returns the step that it stood at.
    pub(crate) fn restore(&self, model: &mut impl Parameters<f32>) -> Result<u64, Error> {
        let saved = &self.checkpoint;
        saved
            .restore(saved.description(), model)
            .map_err(bochner_nn::Error::from)?;
        Ok(saved.progress().step)
    }
}
