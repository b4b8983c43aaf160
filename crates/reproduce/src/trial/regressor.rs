//! A regressor with an attention layer.

use super::rows::{Task, narrow};
use super::{Evaluation, Facts, Findings, Keep, Step};
use crate::{Error, Trial};
use bochner_attention::{Variant, mechanism::Inspection};
use bochner_datasets::RegressionSet;
use bochner_models::regressor::{self, LookAhead, RegressorConfig, Trainer, TrainingConfig};
use bochner_numerics::Seed;
use bochner_report::row::{Heads, Shades};
use ndarray::{Array2, ArrayView2, Axis};
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The settings of a regressor with an attention layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttentionSettings {
    /// The attention mechanism with all its settings.
    pub attention: Variant,
    /// The norm of its magnitudes; absent where it has no choice.
    pub p: Option<f64>,
    /// Its spectral points R; absent where it has none.
    pub points: Option<usize>,
    /// Heads of the attention layer.
    pub heads: usize,
    /// Width of the model.
    pub width: usize,
    /// Width of the feed-forward layer.
    pub hidden: usize,
    /// Passes over the training rows.
    pub epochs: usize,
    /// Adam's step size.
    pub learning_rate: f64,
    /// Largest norm of a gradient.
    pub clip_norm: f64,
    /// Every how many rows of the data set are used; one for all.
    pub every: usize,
}

impl AttentionSettings {
    /// The settings of the released code, with 8 heads and all rows.
    pub fn new(attention: Variant, p: Option<f64>, points: Option<usize>, epochs: usize) -> Self {
        Self {
            attention,
            p,
            points,
            heads: 8,
            width: 64,
            hidden: 64,
            epochs,
            learning_rate: 0.01,
            clip_norm: 1000.0,
            every: 1,
        }
    }
}

/// The error on the test part after the last epoch when the rows are read in another order, of models that see it.
pub const PERMUTED: &str = "last, rows permuted";

/// Refuses a mechanism that sees the order of rows on a set whose rows have none.
///
/// # Errors
/// [`Error::SeesOrder`].
pub(crate) fn without_order(mechanism: &Variant, set: RegressionSet) -> Result<(), Error> {
    match sees_order(mechanism) && !set.is_series() {
        false => Ok(()),
        true => Err(Error::SeesOrder {
            mechanism: mechanism.name(),
            set: set.name(),
        }),
    }
}

fn sees_order(mechanism: &Variant) -> bool {
    mechanism.card().symmetry.sees_order()
}

/// What is looked at in attention weights, in the epoch of the V-number and after the last one.
pub type Look = fn(&Inspection<f32>) -> Findings;

/// Sets up the training.
pub(crate) fn start<'a>(
    task: Task<'a>,
    settings: AttentionSettings,
    look: Option<Look>,
) -> Result<Box<dyn Trial + 'a>, Error> {
    without_order(&settings.attention, task.data.set)?;
    let sees_order = sees_order(&settings.attention);
    let has_weights = settings.attention.card().weights.is_yes();
    let training = TrainingConfig {
        learning_rate: settings.learning_rate,
        clip_norm: Some(settings.clip_norm),
        ..TrainingConfig::default()
    };
    let config = RegressorConfig {
        width: settings.width,
        heads: settings.heads,
        hidden: settings.hidden,
        ..RegressorConfig::new(task.data.inputs.columns(), settings.attention)
    };
    let seed = Seed::new(task.unit.seed);
    let trainer = rows(&task).and_then(|rows| Trainer::new(&config, &training, rows, seed));
    let trainer = trainer.map_err(|error| task.failed(&error))?;
    let trainer = LookAhead::new(trainer);
    Ok(Box::new(Regressor {
        task,
        trainer,
        look,
        sees_order,
        has_weights,
    }))
}

fn rows(task: &Task<'_>) -> Result<regressor::Task, bochner_models::Error> {
    let inputs = &task.data.inputs;
    let value = |(i, j): (usize, usize)| inputs.row(i)[j] as f32;
    regressor::Task::new(
        Array2::from_shape_fn((inputs.rows(), inputs.columns()), value),
        narrow(&task.data.target).into(),
        task.split.train.clone(),
    )
}

struct Regressor<'a> {
    task: Task<'a>,
    trainer: LookAhead,
    look: Option<Look>,
    sees_order: bool,
    has_weights: bool,
}

impl Regressor<'_> {
    fn predict(&self) -> Result<Vec<f64>, Error> {
        let predicted = self.trainer.predict();
        let predicted = predicted.map_err(|error| self.task.failed(&error))?;
        Ok(predicted.iter().map(|&v| f64::from(v)).collect())
    }

    /// The test error with the rows in another order, if the model sees it.
    fn control(&self) -> Result<Findings, Error> {
        if !self.sees_order {
            return Ok(Findings::default());
        }
        let mut order: Vec<usize> = (0..self.task.data.target.len()).collect();
        order.shuffle(&mut Seed::new(self.task.unit.seed).stream("order of rows"));
        let predicted = self.trainer.trainer().predict_in_order(&order);
        let predicted = predicted.map_err(|error| self.task.failed(&error))?;
        let predicted: Vec<f64> = predicted.iter().map(|&y| f64::from(y)).collect();
        let error = self.task.square_error(&predicted, &self.task.split.test);
        Ok(Findings::of([(PERMUTED, error.sqrt())]))
    }
}

impl Trial for Regressor<'_> {
    fn facts(&self) -> Facts {
        self.task.facts(self.trainer.trainer().parameter_count())
    }

    fn epoch(&mut self) -> Result<Step, Error> {
        let report = self.trainer.epoch();
        let report = report.map_err(|error| self.task.failed(&error))?;
        Ok(Step {
            loss: report.loss,
            mse: report.squared_error,
        })
    }

    fn evaluate(&self) -> Result<Evaluation, Error> {
        Ok(self.task.evaluate(&self.predict()?))
    }

    fn save(&self, path: &Path) -> Result<(), Error> {
        let saved = self.trainer.trainer().save(path);
        saved.map_err(|error| Error::checkpoint(path, &error))
    }

    fn resume(&mut self, path: &Path) -> Result<(), Error> {
        Error::unless_verified(path, self.trainer.resume(path))
    }

    fn epochs_done(&self) -> usize {
        self.trainer.trainer().epochs_done()
    }

    fn keeps(&self) -> Keep {
        match self.look {
            Some(_) => Keep::UntilLookedAt,
            None => Keep::Nothing,
        }
    }

    fn findings(&self) -> Result<Findings, Error> {
        let mut findings = self.control()?;
        if let Some(shown) = self.task.predictions(&self.predict()?) {
            findings = findings.with("predictions", &shown);
        }
        let is_looked_at = self.task.is_pictured() || self.look.is_some();
        if !is_looked_at || !self.has_weights {
            return Ok(findings);
        }
        let seen = self.trainer.trainer().inspect();
        let seen = seen.map_err(|error| self.task.failed(&error))?;
        Ok(match self.look {
            // A suite with a look of its own draws what that finds, and no pictures of all weights.
            Some(look) => findings.and(look(&seen)),
            None => findings.with("heads", &heads(&seen)),
        })
    }
}

/// The one sequence's heads.
fn heads(inspection: &Inspection<f32>) -> Heads {
    let draw = |head: ArrayView2<'_, f32>| {
        let n = head.nrows();
        Shades::draw(&head.iter().copied().collect::<Vec<_>>(), n)
    };
    let points = inspection.points.as_ref();
    let points = points.map(|(first, _)| first.index_axis(Axis(0), 0));
    Heads {
        weights: inspection
            .weights
            .index_axis(Axis(0), 0)
            .outer_iter()
            .map(draw)
            .collect(),
        ..crate::trial::learnt_heads(points, inspection.correlation.as_ref())
    }
}
