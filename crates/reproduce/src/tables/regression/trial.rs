//! One unit of the table: a model trained on one split.

mod process;
mod regressor;

use crate::store::Predictions;
use crate::trial::{Evaluation, Facts};
use crate::{Error, Settings, Trial, Unit};
use bochner_datasets::{RegressionData, RegressionSet, Split};
use std::fmt::Display;

/// Sets up the training of a unit.
pub(super) fn start<'a>(
    unit: &Unit,
    data: &'a RegressionData,
) -> Result<Box<dyn Trial + 'a>, Error> {
    let split = data
        .splits
        .get(unit.split)
        .ok_or_else(|| failure(unit.id(), &"there is no such split"))?;
    let task = Task {
        unit: unit.clone(),
        data,
        split,
    };
    match unit.settings.clone() {
        Settings::Attention(settings) => regressor::start(task, settings),
        Settings::Process(settings) => process::start(task, settings),
        Settings::Nodes(_) => Err(task.failed(&"its settings are a node classifier's")),
    }
}

/// Wraps what a model says, with the unit's name.
fn failure(unit: String, error: &dyn Display) -> Error {
    Error::Trial {
        unit,
        message: error.to_string(),
    }
}

/// What is to be learnt, from which rows.
struct Task<'a> {
    unit: Unit,
    data: &'a RegressionData,
    split: &'a Split,
}

impl Task<'_> {
    fn failed(&self, error: &dyn Display) -> Error {
        failure(self.unit.id(), error)
    }

    fn facts(&self, parameters: usize) -> Facts {
        Facts {
            parameters,
            train_rows: self.split.train.len(),
            validation_rows: self.split.validation.len(),
            test_rows: self.split.test.len(),
        }
    }

    /// The errors of what is predicted for all rows of the set.
    fn evaluate(&self, predicted: &[f64]) -> Evaluation {
        let root = |rows: &[usize]| self.square_error(predicted, rows).sqrt();
        let validation = &self.split.validation;
        Evaluation {
            validation: (!validation.is_empty()).then(|| root(validation)),
            validation_loss: None,
            test: root(&self.split.test),
        }
    }

    /// The mean square error over some rows.
    fn square_error(&self, predicted: &[f64], rows: &[usize]) -> f64 {
        let square = |&i: &usize| (predicted[i] - self.data.target[i]).powi(2);
        rows.iter().map(square).sum::<f64>() / rows.len() as f64
    }

    /// Pictures are kept of the first split only.
    fn is_pictured(&self) -> bool {
        self.unit.split == 0
    }

    /// A picture of a prediction, where the set is a time series.
    fn predictions(&self, predicted: &[f64]) -> Option<Predictions> {
        let series = matches!(self.data.set, RegressionSet::Passenger | RegressionSet::Co2);
        (series && self.is_pictured()).then(|| Predictions {
            time: self.data.inputs.column(0).map(|v| v as f32).collect(),
            truth: narrow(&self.data.target),
            predicted: narrow(predicted),
            test: self.split.test.clone(),
        })
    }
}

fn narrow(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&v| v as f32).collect()
}
