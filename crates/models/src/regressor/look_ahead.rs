//! A trainer that uses the forward pass of its predictions as that of its next step.

use super::Trainer;
use super::trainer::Predicted;
use crate::Error;
use crate::training::EpochReport;
use bochner_nn::Integrity;
use bochner_numerics::parallel::awake;
use ndarray::Array1;
use std::path::Path;

/// A [`Trainer`] for predictions after every step.
///
/// Where nothing is drawn in training, that is without dropout and with a mechanism that
/// [draws nothing](bochner_attention::card::Draws::Nothing), a prediction and the next step
/// begin with the same forward pass, which is then done once. In all other cases nothing is shared. The
/// numbers are those of the trainer to the bit.
///
/// Between steps the forward pass stays in memory with all that its gradient needs, on a tape of dfdx,
/// which cannot be sent to another thread.
///
/// ```
/// use bochner_attention::Softmax;
/// use bochner_models::regressor::{LookAhead, RegressorConfig, Task, Trainer, TrainingConfig};
/// use bochner_numerics::Seed;
/// use bochner_models::ndarray::{Array1, Array2};
///
/// let x = Array2::from_shape_fn((20, 1), |(i, _)| i as f32 / 10.0 - 1.0);
/// let y: Array1<f32> = x.column(0).mapv(|x| (2.0 * x).sin());
/// let task = Task::new(x, y.clone(), (0..20).filter(|i| i % 4 != 0).collect())?;
/// let config = RegressorConfig::new(1, Softmax::default().into());
/// let trainer = Trainer::new(&config, &TrainingConfig::regression(), task, Seed::new(1))?;
/// let mut trainer = LookAhead::new(trainer);
///
/// let mut best = f32::INFINITY;
/// for _ in 0..30 {
///     trainer.epoch()?;
///     best = best.min((trainer.predict()? - &y).mapv(|e| e * e).sum());
/// }
/// assert!(best < 1.0);
/// # Ok::<(), bochner_models::Error>(())
/// ```
pub struct LookAhead {
    trainer: Trainer,
    /// The forward pass at the present parameters, from which the next step goes on.
    ahead: Option<Predicted>,
}

impl LookAhead {
    /// Looks ahead from where the trainer stands.
    pub fn new(trainer: Trainer) -> Self {
        Self {
            trainer,
            ahead: None,
        }
    }

    /// The trainer.
    pub fn trainer(&self) -> &Trainer {
        &self.trainer
    }

    /// Does what `Trainer::epoch` does.
    ///
    /// # Errors
    /// The errors of `Trainer::epoch`.
    pub fn epoch(&mut self) -> Result<EpochReport, Error> {
        awake(|| {
            let report = self.trainer.epoch_from(self.ahead.take())?;
            if self.trainer.model.is_deterministic() {
                // An error here comes again when the result is asked for.
                self.ahead = self.trainer.evaluate_ahead().ok();
            }
            Ok(report)
        })
    }

    /// Does what `Trainer::predict` does.
    ///
    /// # Errors
    /// The errors of `Trainer::predict`.
    pub fn predict(&self) -> Result<Array1<f32>, Error> {
        match &self.ahead {
            Some(ahead) => Ok(Array1::from_vec(ahead.output.as_vec())),
            None => self.trainer.predict(),
        }
    }

    /// Does what `Trainer::resume` does.
    ///
    /// # Errors
    /// The errors of `Trainer::resume`.
    pub fn resume(&mut self, path: &Path) -> Result<Integrity, Error> {
        self.ahead = None;
        self.trainer.resume(path)
    }
}
