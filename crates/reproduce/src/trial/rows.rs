//! Data and errors of models of tables.

use super::datapoints::{self, NptSettings};
use super::gaussian_process::{self, ProcessSettings};
use super::regressor::{self, Look};
use super::{AnyError, Evaluation, read_settings, split_of};
use crate::suite::Source;
use crate::{Error, Trial};
use bochner_datasets::{DataStore, Protocol, RegressionData, RegressionSet, Rows, Split, load};
use bochner_report::Unit;
use bochner_report::plan::Arm;
use bochner_report::row::Predictions;
use bochner_report::suite::Set;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::num::NonZeroUsize;

/// The number of inputs of a row of a set.
///
/// # Panics
/// If it is no regression set: cards are checked.
pub(crate) fn inputs(set: &Set) -> usize {
    let parsed = set.name.parse::<RegressionSet>();
    parsed.expect("the name of a regression set").inputs()
}

/// The rows of a set, as divided and as thinned as units ask for.
pub(crate) struct RowSource {
    data: BTreeMap<(Protocol, usize), RegressionData>,
    look: Option<Look>,
}

impl RowSource {
    /// Loads what some arms need; `look` says what is looked at in regressors.
    pub(crate) fn load(
        set: &Set,
        arms: &[Arm],
        files: &DataStore,
        look: Option<Look>,
    ) -> Result<Self, Error> {
        let mut data = BTreeMap::new();
        let set = set.name.parse::<RegressionSet>()?;
        for arm in arms {
            let every = arm.settings().every();
            let rows = NonZeroUsize::new(every).filter(|every| every.get() > 1);
            let rows = rows.map_or(Rows::All, Rows::Every);
            if let Entry::Vacant(place) = data.entry((arm.protocol, every)) {
                place.insert(load(set, arm.protocol, rows, files)?);
            }
        }
        Ok(Self { data, look })
    }
}

impl Source for RowSource {
    fn start<'a>(&'a self, unit: &Unit) -> Result<Box<dyn Trial + 'a>, AnyError> {
        let data = self.data.get(&(unit.protocol, unit.settings.every()));
        start(unit, data.ok_or("its data set is not loaded")?, self.look)
    }
}

impl Source for RegressionData {
    fn start<'a>(&'a self, unit: &Unit) -> Result<Box<dyn Trial + 'a>, AnyError> {
        start(unit, self, None)
    }
}

fn start<'a>(
    unit: &Unit,
    data: &'a RegressionData,
    look: Option<Look>,
) -> Result<Box<dyn Trial + 'a>, AnyError> {
    let task = Task::new(unit, data)?;
    if let Ok(process) = unit.settings.read::<ProcessSettings>() {
        return Ok(Box::new(gaussian_process::start(unit, task, &process)?));
    }
    Ok(match unit.settings.read::<NptSettings>() {
        Ok(settings) => Box::new(datapoints::hidden_targets(unit, task, &settings)?),
        Err(_) => Box::new(regressor::start(unit, task, &read_settings(unit)?, look)?),
    })
}

/// The rows of a unit's data set, and how they are divided.
pub(crate) struct Task<'a> {
    pub(super) data: &'a RegressionData,
    pub(super) split: &'a Split,
    /// Whether pictures are kept: of the first split only.
    pub(super) is_pictured: bool,
}

impl<'a> Task<'a> {
    /// The task of a unit.
    pub(crate) fn new(unit: &Unit, data: &'a RegressionData) -> Result<Self, AnyError> {
        Ok(Self {
            data,
            split: split_of(unit, &data.splits)?,
            is_pictured: unit.split == 0,
        })
    }

    /// The errors of what is predicted for all rows of the set.
    pub(super) fn evaluate(&self, predicted: &[f64]) -> Evaluation {
        let root = |rows: &[usize]| self.square_error(predicted, rows).sqrt();
        let validation = &self.split.validation;
        Evaluation {
            validation: (!validation.is_empty()).then(|| root(validation)),
            test: root(&self.split.test),
            ..Evaluation::default()
        }
    }

    /// The mean square error over some rows.
    pub(super) fn square_error(&self, predicted: &[f64], rows: &[usize]) -> f64 {
        let square = |&i: &usize| (predicted[i] - self.data.target[i]).powi(2);
        rows.iter().map(square).sum::<f64>() / rows.len() as f64
    }

    /// A picture of a prediction, where the set is a time series.
    pub(super) fn predictions(&self, predicted: &[f64]) -> Option<Predictions> {
        (self.data.set.is_series() && self.is_pictured).then(|| Predictions {
            time: self.data.inputs.column(0).map(|v| v as f32).collect(),
            truth: narrow(&self.data.target),
            predicted: narrow(predicted),
            test: self.split.test.clone(),
        })
    }
}

pub(super) fn narrow(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&v| v as f32).collect()
}
