//! The state that a training carries from step to step: optimiser, gradients, random stream.

use crate::Error;
use bochner_nn::{
    Adam, Checkpoint, Parameter, ParameterMut, Parameters, Progress, alloc_gradients,
    drain_gradients, join, zero_gradients,
};
use bochner_numerics::{Seed, Stream};
use bochner_ops::AdamConfig;
use dfdx::tensor::{Cpu, CpuError, Gradients};
use rand::RngCore;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The purpose of the one stream that advances in training.
const STREAM: &str = "training";

/// A training run without its model and its data.
#[derive(Debug)]
pub(crate) struct Descent {
    adam: Adam<f32>,
    /// The gradients, which are reused from step to step; `None` while a forward pass has them, or after a
    /// step that failed and took them along.
    pub(super) gradients: Option<Gradients<f32, Cpu>>,
    /// Zero gradients, to be used again.
    zeros: Vec<Gradients<f32, Cpu>>,
    stream: Stream,
    steps: u64,
    description: String,
}

impl Descent {
    /// The beginning of a run; `description` says everything that a checkpoint must agree in.
    pub(crate) fn new(
        adam: AdamConfig,
        seed: Seed,
        description: &Value,
    ) -> Result<Self, bochner_nn::Error> {
        Ok(Self {
            adam: Adam::new(adam)?,
            gradients: None,
            zeros: Vec::new(),
            stream: seed.stream(STREAM),
            steps: 0,
            description: description.to_string(),
        })
    }

    /// The number of steps done so far.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// The seed of the next pass.
    pub(crate) fn next_seed(&mut self) -> Seed {
        Seed::new(self.stream.next_u64())
    }

    /// The gradients so far, which are zero at the beginning of a step.
    pub(crate) fn gradients(
        &mut self,
        model: &impl Parameters<f32>,
    ) -> Result<Gradients<f32, Cpu>, bochner_nn::Error> {
        match self.gradients.take() {
            Some(gradients) => Ok(gradients),
            None => self.zero_gradients(model),
        }
    }

    /// Gradients of a pass of its own, which are zero.
    pub(super) fn zero_gradients(
        &mut self,
        model: &impl Parameters<f32>,
    ) -> Result<Gradients<f32, Cpu>, bochner_nn::Error> {
        match self.zeros.pop() {
            Some(zeros) => Ok(zeros),
            None => alloc_gradients(model),
        }
    }

    /// Adds the gradients of a pass of its own to those so far, if there are any.
    pub(super) fn add(
        &mut self,
        model: &impl Parameters<f32>,
        mut gradients: Gradients<f32, Cpu>,
    ) -> Result<(), bochner_nn::Error> {
        match &mut self.gradients {
            None => self.gradients = Some(gradients),
            Some(sum) => {
                drain_gradients(model, &mut gradients, sum)?;
                self.zeros.push(gradients);
            }
        }
        Ok(())
    }

    /// Takes a step along the gradients; `change` may change them before.
    pub(super) fn step<M: Parameters<f32>>(
        &mut self,
        model: &mut M,
        learning_rate: f64,
        change: impl FnOnce(&mut Gradients<f32, Cpu>, &M) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut gradients = self.gradients(model)?;
        change(&mut gradients, model)?;
        self.adam.step_at(learning_rate, model, &mut gradients)?;
        zero_gradients(model, &mut gradients)?;
        self.gradients = Some(gradients);
        self.steps += 1;
        Ok(())
    }

    /// Writes a checkpoint: parameters, optimiser, random stream, steps done, and `extra`.
    pub(super) fn save(
        &self,
        model: &impl Parameters<f32>,
        extra: Value,
        path: &Path,
    ) -> Result<(), Error> {
        let progress = Progress {
            step: self.steps,
            streams: BTreeMap::from([(STREAM.to_string(), self.stream.state())]),
            extra,
        };
        Checkpoint::of(self.description.clone(), model)
            .with_adam(&self.adam)
            .with_progress(progress)
            .write(path)
            .map_err(bochner_nn::Error::from)?;
        Ok(())
    }

    /// The description that a checkpoint must agree with.
    pub(super) fn description(&self) -> &str {
        &self.description
    }

    /// Restores all but the parameters of a checkpoint that was read from `path`; if it is not possible, nothing is
    /// changed.
    pub(super) fn restore(&mut self, saved: &Checkpoint<f32>, path: &Path) -> Result<(), Error> {
        let (Some(state), Some(stream)) = (saved.adam(), saved.progress().streams.get(STREAM))
        else {
            return Err(Error::IncompleteCheckpoint {
                path: path.to_path_buf(),
            });
        };
        self.adam = Adam::with_state(*self.adam.config(), state.clone())?;
        self.stream = Stream::from_state(stream);
        self.steps = saved.progress().step;
        Ok(())
    }
}

/// A model, and what it was at its best.
pub(super) struct Kept<M> {
    pub(super) model: M,
    pub(super) best: M,
}

impl<M: Parameters<f32>> Parameters<f32> for Kept<M> {
    fn for_each(&self, prefix: &str, f: &mut dyn FnMut(&str, &dyn Parameter<f32>)) {
        self.model.for_each(prefix, f);
        self.best.for_each(&join(prefix, "best"), f);
    }

    fn for_each_mut(&mut self, prefix: &str, f: &mut dyn FnMut(&str, &mut dyn ParameterMut<f32>)) {
        self.model.for_each_mut(prefix, f);
        self.best.for_each_mut(&join(prefix, "best"), f);
    }

    fn for_each_size(&self, prefix: &str, f: &mut dyn FnMut(&str, usize)) {
        self.model.for_each_size(prefix, f);
        self.best.for_each_size(&join(prefix, "best"), f);
    }
}

pub(crate) fn device_error(error: CpuError) -> Error {
    bochner_nn::Error::from(error).into()
}
