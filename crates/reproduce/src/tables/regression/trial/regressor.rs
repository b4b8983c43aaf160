//! A regressor with an attention layer.

use super::{Task, narrow};
use crate::settings::AttentionSettings;
use crate::store::{Artefacts, Heads, History, Shades};
use crate::trial::{Evaluation, Facts, Step};
use crate::{Error, Trial};
use bochner_attention::Inspection;
use bochner_models::regressor::{self, LookAhead, RegressorConfig, Trainer, TrainingConfig};
use bochner_numerics::Seed;
use ndarray::{Array2, ArrayView2, ArrayView3, Axis};
use std::path::Path;

/// Sets up the training.
pub(super) fn start<'a>(
    task: Task<'a>,
    settings: AttentionSettings,
) -> Result<Box<dyn Trial + 'a>, Error> {
    let training = TrainingConfig {
        learning_rate: settings.learning_rate,
        clip_norm: settings.clip_norm,
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
    Ok(Box::new(Regressor { task, trainer }))
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
}

impl Regressor<'_> {
    fn predict(&self) -> Result<Vec<f64>, Error> {
        let predicted = self.trainer.predict();
        let predicted = predicted.map_err(|error| self.task.failed(&error))?;
        Ok(predicted.iter().map(|&v| f64::from(v)).collect())
    }

    fn heads(&self) -> Result<Heads, Error> {
        let inspection = self.trainer.trainer().inspect();
        inspection
            .map(|inspection| heads(&inspection))
            .map_err(|error| self.task.failed(&error))
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
            mse: report.mse,
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

    fn artefacts(&self, history: &History) -> Result<Artefacts, Error> {
        let pictured = self.task.is_pictured();
        Ok(Artefacts {
            predictions: self.task.predictions(&self.predict()?),
            heads: pictured.then(|| self.heads()).transpose()?,
            ..history.artefacts()
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
        dimensions: points.map_or(0, |points| points.len_of(Axis(2))),
        points: points.map(by_head),
        correlation: inspection
            .correlation
            .as_ref()
            .and_then(|c| c.mean_axis(Axis(0)))
            .map(|mean| mean.iter().copied().collect()),
    }
}

fn by_head(points: ArrayView3<'_, f32>) -> Vec<Vec<f32>> {
    points
        .outer_iter()
        .map(|head| head.iter().copied().collect())
        .collect()
}
