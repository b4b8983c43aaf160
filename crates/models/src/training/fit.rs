//! Training until a measure stops improving.

use super::{EpochReport, Task, Trainer};
use crate::Error;
use bochner_numerics::argument;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The end of a training: a number of epochs, or early stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct FitConfig {
    /// The largest number of epochs, those done before included.
    pub epochs: usize,
    /// The early-stopping patience in epochs: the number of epochs in a row without a new best after which training
    /// stops. `None` disables early stopping.
    #[serde(default)]
    pub patience: Option<usize>,
    /// The direction in which the measure improves.
    #[serde(default)]
    pub goal: Goal,
}

bochner_numerics::checked_when_read!(FitConfig);

impl FitConfig {
    fn validate(&self) -> Result<(), Error> {
        argument::at_least_one("epochs", self.epochs)?;
        Ok(argument::at_least_one(
            "patience",
            self.patience.unwrap_or(1),
        )?)
    }
}

/// The direction in which a measure improves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// Low values are good: a loss, an error.
    #[default]
    Lowest,
    /// High values are good: an accuracy.
    Highest,
}

/// The epoch with the best value so far; of equal ones the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Best {
    /// Its number, counted from 1.
    pub epoch: usize,
    /// The number of steps at its end. From files of versions that did not keep it, it is reckoned with epochs of equally
    /// many steps.
    pub steps: usize,
    /// The value of the measure after it.
    pub value: f64,
}

/// An epoch as observers see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Epoch {
    /// Its number, counted from 1.
    pub number: usize,
    /// The means over its passes.
    pub report: EpochReport,
    /// The measure after it.
    pub measured: f64,
    /// The best epoch so far.
    pub best: Best,
}

/// A callback after every epoch, which shows progress, records curves or writes checkpoints.
///
/// A function of the trainer and the epoch is an observer, too.
#[doc(alias = "callback")]
pub trait Observer<T: Task> {
    /// Looks at an epoch that has just ended.
    ///
    /// # Errors
    /// The training ends with this error, at a state from which it can go on.
    fn observe(&mut self, trainer: &Trainer<T>, epoch: &Epoch) -> Result<(), Error>;
}

impl<T: Task, F: FnMut(&Trainer<T>, &Epoch) -> Result<(), Error>> Observer<T> for F {
    fn observe(&mut self, trainer: &Trainer<T>, epoch: &Epoch) -> Result<(), Error> {
        self(trainer, epoch)
    }
}

/// An observer that records every epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curves {
    /// The epochs, in their order.
    pub epochs: Vec<Epoch>,
}

impl<T: Task> Observer<T> for Curves {
    fn observe(&mut self, _: &Trainer<T>, epoch: &Epoch) -> Result<(), Error> {
        self.epochs.push(*epoch);
        Ok(())
    }
}

/// An observer that writes a checkpoint after every so many epochs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoints {
    /// The file, always the same one; unless the path holds `{epoch}`, which becomes the epoch's number. Then every
    /// checkpoint stays, as [`Trainer::averaged`] needs them.
    pub path: PathBuf,
    /// The number of epochs between two writings, at least 1.
    pub every: usize,
}

impl<T: Task> Observer<T> for Checkpoints {
    fn observe(&mut self, trainer: &Trainer<T>, epoch: &Epoch) -> Result<(), Error> {
        argument::at_least_one("every", self.every)?;
        if epoch.number.is_multiple_of(self.every) {
            match self.path.to_str() {
                Some(path) => {
                    let path = path.replace("{epoch}", &epoch.number.to_string());
                    trainer.save(Path::new(&path))?;
                }
                None => trainer.save(&self.path)?,
            }
        }
        Ok(())
    }
}

impl<T: Task> Trainer<T> {
    /// Trains until the epochs are done or the measure has stopped improving, and returns the best epoch, whose
    /// parameters are kept: [`use_best`](Self::use_best) puts them into the model.
    ///
    /// The measure is computed after every epoch, on any data; then the observers see the epoch, in their order. A training
    /// that is [resumed](Self::resume) has the patience that was left, and ends where the uninterrupted one would have.
    ///
    /// # Errors
    /// [`Error::Argument`] for no epochs or no patience, or a measure that is not finite; the errors of
    /// [`epoch`](Self::epoch), of the measure and of the observers.
    pub fn fit(
        &mut self,
        config: &FitConfig,
        measure: impl Fn(&Self) -> Result<f64, Error>,
        observers: &mut [&mut dyn Observer<T>],
    ) -> Result<Best, Error> {
        config.validate()?;
        loop {
            let done = self.epochs_done();
            if let Some((best, _)) = &self.best {
                let waited = done.saturating_sub(best.epoch);
                let is_patient = config.patience.is_none_or(|patience| waited < patience);
                if done >= config.epochs || !is_patient {
                    return Ok(*best);
                }
            }
            let report = self.epoch()?;
            let (number, measured) = (self.epochs_done(), measure(self)?);
            argument::in_range(measured.is_finite(), "the measure", measured, "finite")?;
            let is_better = |best: &Best| match config.goal {
                Goal::Lowest => measured < best.value,
                Goal::Highest => measured > best.value,
            };
            if self.best.as_ref().is_none_or(|(best, _)| is_better(best)) {
                let best = Best {
                    epoch: number,
                    steps: self.steps_done(),
                    value: measured,
                };
                self.best = Some((best, self.model.clone()));
            }
            let best = self.best().expect("kept just now or before");
            let epoch = Epoch {
                number,
                report,
                measured,
                best,
            };
            for observer in observers.iter_mut() {
                observer.observe(self, &epoch)?;
            }
        }
    }

    /// The best epoch that [`fit`](Self::fit) has seen.
    pub fn best(&self) -> Option<Best> {
        self.best.as_ref().map(|&(best, _)| best)
    }

    /// The model after the best epoch.
    pub fn best_model(&self) -> Option<&T::Model> {
        self.best.as_ref().map(|(_, model)| model)
    }

    /// Puts the model of the best epoch in the place of the model, if there is one: its parameters, and what its mechanism
    /// had drawn at that step. A further epoch starts from these parameters, with the optimiser as it is and what is drawn
    /// at its step.
    pub fn use_best(&mut self) {
        if let Some((best, model)) = &self.best {
            self.model = model.clone();
            self.stands_at = best.steps as u64;
        }
    }
}
