//! Saving and restoring a training run in one safetensors file.

mod error;
mod file;

pub use error::CheckpointError;

use crate::format::Array;
use crate::optim::AdamState;
use crate::parameters::Parameters;
use crate::{Adam, Element};
use bochner_numerics::{StreamState, argument};
use bochner_ops::Moments;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The version of the format written here, and the only one read.
const VERSION: u32 = 1;

/// The integrity of a checkpoint: are its bytes known to be those that were written?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integrity {
    /// The checkpoint was made in memory, or the checksum of its file matches its bytes.
    Verified,
    /// It was read from a file of an older version, which has no checksum.
    Unverified,
}

/// The progress of a training run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// The number of steps taken.
    pub step: u64,
    /// The position of each random stream, by its purpose.
    pub streams: BTreeMap<String, StreamState>,
    /// Any other data that the caller needs to go on.
    pub extra: serde_json::Value,
}

/// A training run at rest: parameters, optimiser, progress.
///
/// The file is a safetensors file, readable from Python: each parameter under its name, Adam's
/// moments under `optimizer.m.<name>` and `optimizer.v.<name>`, everything else as JSON under the
/// key `bochner` of `__metadata__`. The same run gives the same bytes.
///
/// A checksum there tells whether a byte was changed since: the number that
/// [`fingerprint`](bochner_numerics::fingerprint()) gives for the whole file with zeros in place of the
/// checksum's own 16 digits. Files of older versions have none; they are read all the same, and
/// [`integrity`](Self::integrity) says so.
///
/// A checkpoint keeps Adam's moments and steps, but not its settings: [`Adam::with_state`] takes any. A run
/// that must go on with its own settings writes them into its description, as in the example; other runs may
/// change the learning rate at will.
///
/// ```
/// use bochner_nn::{Adam, Checkpoint, Linear, Progress};
/// use bochner_numerics::{Seed, Stream};
/// use bochner_ops::AdamConfig;
/// use bochner_nn::dfdx::prelude::*;
///
/// let device = Cpu::default();
/// let mut stream = Seed::new(1).stream("initial values");
/// let model: Linear<usize, usize, f32> = Linear::try_new(&device, 3, 2, &mut stream)?;
/// let adam = Adam::new(AdamConfig::adamw())?;
/// let description = format!("linear 3 to 2, {:?}", adam.config());
///
/// let directory = tempfile::tempdir().unwrap();
/// let path = directory.path().join("run.safetensors");
/// let mut progress = Progress { step: 7, ..Default::default() };
/// progress.streams.insert("initial values".into(), stream.state());
/// Checkpoint::of(&*description, &model)
///     .with_adam(&adam)
///     .with_progress(progress)
///     .write(&path)?;
///
/// let saved = Checkpoint::<f32>::read(&path)?;
/// let mut other: Linear<usize, usize, f32> = Linear::try_new(&device, 3, 2, &mut stream)?;
/// saved.restore(&description, &mut other)?;
/// let adam = Adam::with_state(AdamConfig::adamw(), saved.adam().unwrap().clone())?;
/// let stream = Stream::from_state(&saved.progress().streams["initial values"]);
/// assert_eq!(other.weight.as_vec(), model.weight.as_vec());
///
/// let faster = format!("linear 3 to 2, {:?}", AdamConfig { learning_rate: 0.1, ..AdamConfig::adamw() });
/// assert!(saved.restore(&faster, &mut other).is_err());
/// # Ok::<(), bochner_nn::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint<E> {
    description: String,
    parameters: Vec<(String, Array<E>)>,
    /// The sizes that the shapes do not show, by name; none in files of older versions.
    sizes: BTreeMap<String, usize>,
    adam: Option<AdamState<E>>,
    progress: Progress,
    integrity: Integrity,
}

impl<E: Element> Checkpoint<E> {
    /// A copy of the model's parameters.
    ///
    /// `description` says which model this is, beyond the names and shapes of its parameters: its
    /// variant, its settings, perhaps a [`fingerprint`](bochner_numerics::fingerprint()) of what it learns
    /// from. Restoring demands the same.
    pub fn of(description: impl Into<String>, model: &(impl Parameters<E> + ?Sized)) -> Self {
        let mut parameters = Vec::new();
        model.for_each("", &mut |name, parameter| {
            let (dims, mut values) = (parameter.dims(), Vec::new());
            parameter.read_into(&mut values);
            parameters.push((name.to_string(), Array { dims, values }));
        });
        Self {
            description: description.into(),
            parameters,
            sizes: sizes(model),
            adam: None,
            progress: Progress::default(),
            integrity: Integrity::Verified,
        }
    }

    /// Adds a copy of the optimiser's state: moments and steps, not the settings.
    pub fn with_adam(self, adam: &Adam<E>) -> Self {
        Self {
            adam: Some(adam.state().clone()),
            ..self
        }
    }

    /// Adds how far the run has come.
    pub fn with_progress(self, progress: Progress) -> Self {
        Self { progress, ..self }
    }

    /// Splits a checkpoint of two models: the parameters without the prefix, and those named `prefix.…` with the prefix
    /// removed. Neither half keeps the optimiser's state; both keep the progress of the file, which is that of the first
    /// model.
    ///
    /// ```
    /// use bochner_nn::{Checkpoint, Linear};
    /// use bochner_numerics::Seed;
    /// use bochner_nn::dfdx::tensor::Cpu;
    ///
    /// let mut rng = Seed::new(1).stream("initial values");
    /// let mut layer = || Linear::<usize, usize, f32>::try_new(&Cpu::default(), 3, 2, &mut rng);
    /// let (stack, mut other) = (vec![layer()?, layer()?], layer()?);
    /// let [_, last] = Checkpoint::of("a stack", &stack).split("1");
    /// last.restore("a stack", &mut other)?;
    /// assert_eq!(other.weight.as_vec(), stack[1].weight.as_vec());
    /// # Ok::<(), bochner_nn::Error>(())
    /// ```
    pub fn split(self, prefix: &str) -> [Self; 2] {
        let Self {
            description,
            parameters,
            sizes,
            progress,
            integrity,
            ..
        } = self;
        let own = |name: &str| Some(name.strip_prefix(prefix)?.strip_prefix('.')?.to_string());
        let (of_prefix, others): (Vec<_>, Vec<_>) = parameters
            .into_iter()
            .partition(|(name, _)| own(name).is_some());
        let renamed = of_prefix
            .into_iter()
            .map(|(name, array)| (own(&name).unwrap_or(name), array));
        let (of_prefix, other_sizes): (BTreeMap<_, _>, BTreeMap<_, _>) =
            (sizes.into_iter()).partition(|(name, _)| own(name).is_some());
        let renamed_sizes = of_prefix
            .into_iter()
            .map(|(name, size)| (own(&name).unwrap_or(name), size));
        let halves = [
            (others, other_sizes),
            (renamed.collect(), renamed_sizes.collect()),
        ];
        halves.map(|(parameters, sizes)| Self {
            description: description.clone(),
            parameters,
            sizes,
            adam: None,
            progress: progress.clone(),
            integrity,
        })
    }

    /// The optimiser's state, if it was saved.
    pub fn adam(&self) -> Option<&AdamState<E>> {
        self.adam.as_ref()
    }

    /// The progress of the run.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The description of the model.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The integrity of the checkpoint. A checksum in the file was compared when it was read.
    pub fn integrity(&self) -> Integrity {
        self.integrity
    }

    /// Checks that all values are finite, that no second moment is negative and that the moments fit the
    /// parameters.
    fn validate(&self) -> Result<(), CheckpointError> {
        for (name, array) in &self.parameters {
            argument::finite(name.clone(), &array.dims, &array.values)?;
        }
        let Some(adam) = &self.adam else {
            return Ok(());
        };
        for (name, array) in &self.parameters {
            if let Some(moments) = adam.moments.get(name) {
                let lengths = [[array.values.len()], [moments.first.len()]];
                argument::shape(format!("first moment of {name}"), &lengths[0], &lengths[1])?;
            }
        }
        Ok(adam.validate()?)
    }

    /// Copies the parameters into the model.
    ///
    /// # Errors
    /// [`CheckpointError::Impossible`] for a weight or moment that is NaN or infinite, or a second moment below
    /// zero;
    /// [`CheckpointError::OtherDescription`], [`CheckpointError::MissingParameter`],
    /// [`CheckpointError::UnknownParameter`], [`CheckpointError::SecondModel`], [`CheckpointError::OtherShape`] or
    /// [`CheckpointError::OtherSize`] if the checkpoint is another model's; the model is not touched then.
    pub fn restore(
        &self,
        description: &str,
        model: &mut (impl Parameters<E> + ?Sized),
    ) -> Result<(), CheckpointError> {
        self.validate()?;
        let mut arrays = self.fitting(description, model)?.into_iter();
        model.for_each_mut("", &mut |_, parameter| {
            let array = arrays.next().expect("one for each, in order");
            parameter.write(&array.values);
        });
        Ok(())
    }

    /// The array of each parameter of the model, in the model's order.
    fn fitting(
        &self,
        description: &str,
        model: &(impl Parameters<E> + ?Sized),
    ) -> Result<Vec<&Array<E>>, CheckpointError> {
        if self.description != description {
            return Err(CheckpointError::OtherDescription {
                expected: description.to_string(),
                got: self.description.clone(),
            });
        }
        let mut left: BTreeMap<&str, &Array<E>> =
            self.parameters.iter().map(|(n, a)| (&**n, a)).collect();
        let mut found = Ok(Vec::new());
        model.for_each("", &mut |name, parameter| {
            if let Ok(arrays) = &mut found {
                match take(&mut left, name, parameter.dims()) {
                    Ok(array) => arrays.push(array),
                    Err(error) => found = Err(error),
                }
            }
        });
        let found = found?;
        let Some(name) = left.keys().next() else {
            self.expect_sizes(&sizes(model))?;
            return Ok(found);
        };
        let names: Vec<&str> = self.parameters.iter().map(|(name, _)| &**name).collect();
        Err(match second_model(&left, &names) {
            Some(prefix) => CheckpointError::SecondModel { prefix },
            None => CheckpointError::UnknownParameter {
                name: name.to_string(),
            },
        })
    }

    /// Compares the sizes with those of a model, as far as the file holds them.
    fn expect_sizes(&self, of_model: &BTreeMap<String, usize>) -> Result<(), CheckpointError> {
        for (name, &expected) in of_model {
            let got = self.sizes.get(name).copied().unwrap_or(expected);
            if got != expected {
                return Err(CheckpointError::OtherSize {
                    name: name.clone(),
                    expected,
                    got,
                });
            }
        }
        Ok(())
    }

    /// Writes the file: first beside its place, then moved into it, so that a crash leaves either
    /// the old file or the new one.
    ///
    /// # Errors
    /// [`CheckpointError::Io`] if the disk is full or the place cannot be written;
    /// [`CheckpointError::UnusableName`] if two parameters share a name, or one looks like the
    /// optimiser's; [`CheckpointError::Impossible`] for values that would be refused when they are read.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), CheckpointError> {
        let path = path.as_ref();
        self.validate()?;
        let bytes = file::encode(path, self)?;
        file::write_atomically(path, &bytes)
    }

    /// Reads and checks a file.
    ///
    /// # Errors
    /// [`CheckpointError::Io`], [`CheckpointError::Truncated`],
    /// [`CheckpointError::NotACheckpoint`], [`CheckpointError::OtherVersion`],
    /// [`CheckpointError::OtherType`], [`CheckpointError::Damaged`] if the checksum is wrong, or
    /// [`CheckpointError::Impossible`] for a weight or moment that is NaN or infinite, or a second moment below
    /// zero.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, CheckpointError> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|source| CheckpointError::Io {
            doing: "read",
            path: path.to_path_buf(),
            source,
        })?;
        let checkpoint = file::decode(path, &bytes)?;
        checkpoint.validate()?;
        Ok(checkpoint)
    }
}

/// The sizes of a model that the shapes of its parameters do not show.
fn sizes<E: Element>(model: &(impl Parameters<E> + ?Sized)) -> BTreeMap<String, usize> {
    let mut sizes = BTreeMap::new();
    model.for_each_size("", &mut |name, size| {
        sizes.insert(name.to_string(), size);
    });
    sizes
}

/// The prefix of the parameters that are left over, if these are the model's own once more with a prefix: those of the best
/// epoch in a training's checkpoint.
fn second_model<E>(left: &BTreeMap<&str, &Array<E>>, all: &[&str]) -> Option<String> {
    let (prefix, _) = left.keys().next()?.split_once('.')?;
    let found = all.iter().filter(|name| !left.contains_key(**name));
    let mut again = found.map(|name| format!("{prefix}.{name}"));
    let is_copy = 2 * left.len() == all.len() && again.all(|name| left.contains_key(&*name));
    is_copy.then(|| prefix.to_string())
}

/// Removes the array of a parameter, if it has the right shape.
fn take<'a, E>(
    left: &mut BTreeMap<&str, &'a Array<E>>,
    name: &str,
    expected: Vec<usize>,
) -> Result<&'a Array<E>, CheckpointError> {
    let name = || name.to_string();
    let Some(array) = left.remove(&*name()) else {
        return Err(CheckpointError::MissingParameter { name: name() });
    };
    if array.dims != expected {
        return Err(CheckpointError::OtherShape {
            name: name(),
            expected,
            got: array.dims.clone(),
        });
    }
    Ok(array)
}
