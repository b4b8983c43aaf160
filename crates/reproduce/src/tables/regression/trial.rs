//! One unit of the table: a regressor trained on one split.

use crate::store::{Artefacts, Heads, History, Predictions, Shades};
use crate::trial::{Evaluation, Facts, Step};
use crate::{Error, Trial, Unit};
use bochner_attention::Inspection;
use bochner_datasets::{RegressionData, RegressionSet, Split};
use bochner_models::regressor::{RegressorConfig, Task, Trainer, TrainingConfig};
use bochner_numerics::Seed;
use ndarray::{Array1, Array2, ArrayView2, ArrayView3, Axis};
use std::fmt::Display;
use std::path::Path;

/// Sets up the training of a unit.
pub(super) fn start<'a>(
    unit: &Unit,
    data: &'a RegressionData,
) -> Result<Box<dyn Trial + 'a>, Error> {
    let failed = failure(unit.id());
    let split = data
        .splits
        .get(unit.split)
        .ok_or_else(|| failed(&"there is no such split"))?;
    let trainer = Trainer::new(
        &config(unit, data.inputs.columns()),
        &training(unit),
        task(data, split).map_err(|error| failed(&error))?,
        Seed::new(unit.seed),
    )
    .map_err(|error| failed(&error))?;
    Ok(Box::new(Regression {
        unit: unit.clone(),
        data,
        split,
        trainer,
    }))
}

fn config(unit: &Unit, inputs: usize) -> RegressorConfig {
    let settings = &unit.settings;
    RegressorConfig {
        width: settings.width,
        heads: settings.heads,
        hidden: settings.hidden,
        ..RegressorConfig::new(inputs, settings.attention.clone())
    }
}

fn training(unit: &Unit) -> TrainingConfig {
    TrainingConfig {
        learning_rate: unit.settings.learning_rate,
        clip_norm: unit.settings.clip_norm,
    }
}

fn task(data: &RegressionData, split: &Split) -> Result<Task, bochner_models::Error> {
    let shape = (data.inputs.rows(), data.inputs.columns());
    let value = |(i, j): (usize, usize)| data.inputs.row(i)[j] as f32;
    Task::new(
        Array2::from_shape_fn(shape, value),
        data.target.iter().map(|&y| y as f32).collect(),
        split.train.clone(),
    )
}

/// Wraps what a model says, with the unit's name.
fn failure(unit: String) -> impl Fn(&dyn Display) -> Error {
    move |error| Error::Trial {
        unit: unit.clone(),
        message: error.to_string(),
    }
}

struct Regression<'a> {
    unit: Unit,
    data: &'a RegressionData,
    split: &'a Split,
    trainer: Trainer,
}

impl Regression<'_> {
    fn failed(&self, error: &dyn Display) -> Error {
        failure(self.unit.id())(error)
    }

    fn predict(&self) -> Result<Array1<f32>, Error> {
        self.trainer.predict().map_err(|error| self.failed(&error))
    }

    /// The root mean square error over some rows.
    fn error(&self, predicted: &Array1<f32>, rows: &[usize]) -> f64 {
        let square = |&i: &usize| (f64::from(predicted[i]) - self.data.target[i]).powi(2);
        (rows.iter().map(square).sum::<f64>() / rows.len() as f64).sqrt()
    }

    fn predictions(&self) -> Result<Predictions, Error> {
        let narrow = |values: &[f64]| values.iter().map(|&v| v as f32).collect();
        Ok(Predictions {
            time: self.data.inputs.column(0).map(|v| v as f32).collect(),
            truth: narrow(&self.data.target),
            predicted: self.predict()?.to_vec(),
            test: self.split.test.clone(),
        })
    }

    fn heads(&self) -> Result<Heads, Error> {
        let inspection = self.trainer.inspect();
        inspection
            .map(|inspection| heads(&inspection))
            .map_err(|error| self.failed(&error))
    }
}

impl Trial for Regression<'_> {
    fn facts(&self) -> Facts {
        Facts {
            parameters: self.trainer.parameter_count(),
            train_rows: self.split.train.len(),
            validation_rows: self.split.validation.len(),
            test_rows: self.split.test.len(),
        }
    }

    fn epoch(&mut self) -> Result<Step, Error> {
        let report = self.trainer.epoch();
        let report = report.map_err(|error| failure(self.unit.id())(&error))?;
        Ok(Step {
            loss: report.loss,
            mse: report.mse,
        })
    }

    fn evaluate(&self) -> Result<Evaluation, Error> {
        let predicted = self.predict()?;
        let validation = &self.split.validation;
        Ok(Evaluation {
            validation: (!validation.is_empty()).then(|| self.error(&predicted, validation)),
            test: self.error(&predicted, &self.split.test),
        })
    }

    fn save(&self, path: &Path) -> Result<(), Error> {
        let saved = self.trainer.save(path);
        saved.map_err(|error| Error::Checkpoint {
            path: path.to_owned(),
            message: error.to_string(),
        })
    }

    fn resume(&mut self, path: &Path) -> Result<(), Error> {
        let resumed = self.trainer.resume(path);
        resumed.map_err(|error| Error::Checkpoint {
            path: path.to_owned(),
            message: error.to_string(),
        })
    }

    fn epochs_done(&self) -> usize {
        self.trainer.epochs_done()
    }

    /// Pictures are kept of the first split only.
    fn artefacts(&self, history: &History) -> Result<Artefacts, Error> {
        let series = matches!(self.data.set, RegressionSet::Passenger | RegressionSet::Co2);
        let pictured = self.unit.split == 0;
        Ok(Artefacts {
            predictions: (pictured && series)
                .then(|| self.predictions())
                .transpose()?,
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
