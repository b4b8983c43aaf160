//! A hook on the gradients of a step.

use super::{Task, Trainer};
use crate::Error;
use bochner_nn::{Parameters, flat_gradients, set_flat_gradients};
use dfdx::tensor::{Cpu, Gradients};
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// The error of a hook.
type HookError = Box<dyn std::error::Error + Send + Sync>;

/// A function of the gradients of a step, if there is one. The lock lets threads share the trainer.
#[derive(Default)]
pub(super) struct GradientHook(Option<Mutex<Box<Function>>>);

type Function = dyn FnMut(&mut [f32]) -> Result<(), HookError> + Send;

impl fmt::Debug for GradientHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_set = self.0.is_some();
        f.debug_struct("GradientHook")
            .field("is_set", &is_set)
            .finish()
    }
}

impl GradientHook {
    /// Lets the function change the gradients.
    pub(super) fn call(
        &mut self,
        model: &impl Parameters<f32>,
        gradients: &mut Gradients<f32, Cpu>,
    ) -> Result<(), Error> {
        let Some(function) = &mut self.0 else {
            return Ok(());
        };
        let function = function.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut flat = flat_gradients(model, gradients)?;
        function(&mut flat).map_err(Error::GradientHook)?;
        Ok(set_flat_gradients(model, gradients, &flat)?)
    }
}

impl<T: Task> Trainer<T> {
    /// The trainer with a function that may change the gradients of each step: a number for each element of the trained
    /// parameters, in the order in which the model's [`Parameters`] are visited, each in row-major order.
    ///
    /// They are the gradients of the mean objective over all batches and parts of the step. The L2 term, clipping and the
    /// optimiser come after, so that trainers whose hooks average their gradients take the same steps. Such trainers need
    /// the same settings and seed, which give them the same initial values, and must take equally many steps. A checkpoint
    /// does not hold the hook.
    ///
    /// If the function fails, the epoch ends with [`Error::GradientHook`], and the parameters are those before the step.
    ///
    /// Two trainers learn one line, each from its half of the rows. Here they are two threads with channels between them;
    /// two machines would have a network:
    ///
    /// ```
    /// use bochner_attention::Softmax;
    /// use bochner_models::ndarray::Array2;
    /// use bochner_models::regressor::{RegressorConfig, Task, Trainer, TrainingConfig};
    /// use bochner_numerics::Seed;
    /// use std::sync::mpsc::channel;
    ///
    /// let x = Array2::from_shape_fn((20, 1), |(i, _)| i as f32 / 10.0 - 1.0);
    /// let y = x.column(0).mapv(|x| 0.5 * x);
    /// let (config, training) = (RegressorConfig::new(1, Softmax::default().into()), TrainingConfig::regression());
    /// let (to_second, from_first) = channel::<Vec<f32>>();
    /// let (to_first, from_second) = channel();
    /// let ends = [(0, to_second, from_second), (1, to_first, from_first)];
    /// let mut trainers = Vec::new();
    /// for (first, sender, receiver) in ends {
    ///     let half = (first..20).step_by(2).collect();
    ///     let task = Task::new(x.clone(), y.clone(), half)?;
    ///     let trainer = Trainer::new(&config, &training, task, Seed::new(1))?;
    ///     trainers.push(trainer.with_gradient_hook(move |gradients| {
    ///         sender.send(gradients.to_vec())?;
    ///         for (own, other) in gradients.iter_mut().zip(receiver.recv()?) {
    ///             *own = 0.5 * (*own + other);
    ///         }
    ///         Ok(())
    ///     }));
    /// }
    ///
    /// std::thread::scope(|scope| {
    ///     let epoch = |trainer: &mut Trainer| trainer.epoch().map(drop);
    ///     let running: Vec<_> = trainers.iter_mut().map(|t| scope.spawn(move || epoch(t))).collect();
    ///     running.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    /// })?;
    /// assert_eq!(trainers[0].predict()?, trainers[1].predict()?);
    /// # Ok::<(), bochner_models::Error>(())
    /// ```
    #[doc(alias = "all_reduce")]
    #[must_use]
    pub fn with_gradient_hook(
        mut self,
        hook: impl FnMut(&mut [f32]) -> Result<(), HookError> + Send + 'static,
    ) -> Self {
        self.hook = GradientHook(Some(Mutex::new(Box::new(hook))));
        self
    }
}
