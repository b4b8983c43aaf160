//! One unit while it runs, and the trials that several suites are made of.

pub mod datapoints;
pub mod events;
pub mod gaussian_process;
mod history;
pub mod model;
pub mod nodes;
pub mod regressor;
pub mod rows;
pub mod sentences;
pub mod translation;

pub use history::History;
pub(crate) use model::{AnyError, Training};

use bochner_datasets::Split;
use bochner_models::training::EpochReport;
use bochner_report::Unit;
use bochner_report::row::{Artefacts, Heads, Row, at_last};
use ndarray::{Array2, Array3, ArrayView2, ArrayView3, Axis};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// The quality of a model after an epoch, in the metric of the suite.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// The value on the validation part; `None` without one.
    pub validation: Option<f64>,
    /// The loss on the validation part, for a rule that looks at it as well; `None` without.
    pub validation_loss: Option<f64>,
    /// The value on the test part.
    pub test: f64,
    /// The values on other test parts, by name. A row has each of them as a measure, in the epoch that
    /// validation chose.
    pub others: Vec<(&'static str, f64)>,
}

/// An epoch whose model is inspected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The first.
    First,
    /// The last.
    Last,
    /// That of the V-number.
    OfV,
    /// That of the R-number.
    OfR,
}

impl Moment {
    /// The ending of the file of the weights of this epoch.
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Last => "last",
            Self::OfV => "v",
            Self::OfR => "r",
        }
    }
}

/// The findings in a model at the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Numbers, by name, which become part of the row.
    pub measures: BTreeMap<String, f64>,
    /// Curves and pictures, by name.
    pub artefacts: Artefacts,
    /// Numbers in the place of those of the epochs.
    pub finals: Finals,
}

/// Numbers that are measured once, with more effort, in the epochs that the numbers of all epochs choose. They replace
/// these in the row, where these become [measures](Finals::REPLACED).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Finals {
    /// The V-number.
    pub v: Option<f64>,
    /// The R-number.
    pub r: Option<f64>,
    /// The validation value of the V-number's epoch.
    pub validation: Option<f64>,
}

impl Finals {
    /// The names of what is replaced: V-number, R-number and validation value as in each epoch.
    pub const REPLACED: [&str; 3] = ["V, each epoch", "R, each epoch", "validation, each epoch"];

    fn or(self, others: Self) -> Self {
        Self {
            v: self.v.or(others.v),
            r: self.r.or(others.r),
            validation: self.validation.or(others.validation),
        }
    }

    /// Puts the numbers into a row.
    pub(crate) fn replace(self, row: &mut Row) {
        let old = [row.v_number, Some(row.r_number), row.validation];
        let new = [self.v, self.r, self.validation];
        row.v_number = self.v.or(row.v_number);
        row.r_number = self.r.unwrap_or(row.r_number);
        row.validation = self.validation.or(row.validation);
        for ((name, old), new) in Self::REPLACED.into_iter().zip(old).zip(new) {
            let old = old.filter(|_| new.is_some());
            row.measures.extend(old.map(|old| (name.to_owned(), old)));
        }
    }
}

/// A unit while it runs: a model in training, and what is measured in it. The runner names the unit in errors.
pub trait Trial {
    /// The model in training.
    fn model(&self) -> &dyn Training;

    /// The model, to be trained and resumed.
    fn model_mut(&mut self) -> &mut dyn Training;

    /// The numbers of rows that are trained on, that choose an epoch, and that are tested on.
    fn rows(&self) -> [usize; 3];

    /// The training error of an epoch: the mean squared error unless the model has another one. Of a classifier that is
    /// that of its probabilities, summed over the classes (its Brier score); a translator takes its cross-entropy.
    fn training_error(&self, report: &EpochReport) -> f64 {
        report.squared_error
    }

    /// Measures the model.
    ///
    /// # Errors
    /// Whatever stops the evaluation.
    fn evaluate(&self) -> Result<Evaluation, AnyError>;

    /// The early-stopping patience in epochs, by the rule of [`History::chosen`]. `None` disables early stopping.
    fn patience(&self) -> Option<NonZeroUsize> {
        None
    }

    /// The epochs besides the last whose weights are kept until the model is inspected in them.
    fn inspected(&self) -> &'static [Moment] {
        &[]
    }

    /// Inspects the model as it is: after its last epoch, or with the weights that were kept of a moment. An inspection
    /// that takes minutes asks now and then whether it is `stopped`.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted) if it is stopped, and whatever else stops the inspection.
    fn findings(&self, moment: Moment, stopped: &dyn Fn() -> bool) -> Result<Findings, AnyError> {
        let _ = (moment, stopped);
        Ok(Findings::default())
    }
}

impl Findings {
    /// The findings under the names of [`at_last`].
    #[must_use]
    pub(crate) fn at_last(self) -> Self {
        let measures = self.measures.into_iter();
        Self {
            measures: measures
                .map(|(name, value)| (at_last(&name), value))
                .collect(),
            artefacts: self.artefacts.renamed(at_last),
            finals: self.finals,
        }
    }

    /// Measures alone.
    pub fn of(measures: impl IntoIterator<Item = (&'static str, f64)>) -> Self {
        let measures = measures.into_iter();
        Self {
            measures: measures
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            ..Self::default()
        }
    }

    /// The findings with an artefact more.
    #[must_use]
    pub fn with(self, name: &str, value: &(impl Serialize + ?Sized)) -> Self {
        let artefacts = self.artefacts.with(name, value);
        Self { artefacts, ..self }
    }

    /// The findings and others; of two with one name the later one.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.measures.extend(others.measures);
        self.artefacts = self.artefacts.and(others.artefacts);
        self.finals = others.finals.or(self.finals);
        self
    }
}

impl From<Artefacts> for Findings {
    fn from(artefacts: Artefacts) -> Self {
        Self {
            artefacts,
            ..Self::default()
        }
    }
}

/// The split of a unit.
///
/// # Errors
/// There is none of its number.
pub fn split_of<'a>(unit: &Unit, splits: &'a [Split]) -> Result<&'a Split, AnyError> {
    let split = splits.get(unit.split);
    split.ok_or_else(|| {
        let (split, splits) = (unit.split, splits.len());
        format!("its split is number {split}, counted from 0, and there are {splits}").into()
    })
}

/// The numbers of rows to train on, for validation and for test.
pub fn sizes(split: &Split) -> [usize; 3] {
    [&split.train, &split.validation, &split.test].map(Vec::len)
}

/// The settings of a unit as its suite knows them.
///
/// # Errors
/// They are those of another suite.
pub fn read_settings<T: DeserializeOwned>(unit: &Unit) -> Result<T, AnyError> {
    let settings = unit.settings.read();
    settings.map_err(|error| format!("its settings are not this suite's: {error}").into())
}

/// The points of each head, `[H, R, D]`, and the correlation of the heads in each latent dimension, `[D, H, H]`.
pub(crate) fn learnt_heads(
    points: Option<ArrayView3<'_, f32>>,
    correlation: Option<&Array3<f32>>,
) -> Heads {
    let head = |head: ArrayView2<'_, f32>| head.iter().copied().collect();
    let correlation = correlation.and_then(|all| all.mean_axis(Axis(0)));
    Heads {
        weights: Vec::new(),
        dimensions: points.map_or(0, |points| points.len_of(Axis(2))),
        points: points.map(|points| points.outer_iter().map(head).collect()),
        correlation: correlation.map(|mean| mean.iter().copied().collect()),
    }
}

/// The correlation of the heads as a matrix; `None` if there is none, or the numbers are none.
pub(crate) fn correlations(heads: &Heads) -> Option<Array2<f64>> {
    let values = heads.correlation.as_ref()?;
    let side = values.len().isqrt();
    let values = values.iter().map(|&c| f64::from(c)).collect();
    Array2::from_shape_vec((side, side), values).ok()
}
