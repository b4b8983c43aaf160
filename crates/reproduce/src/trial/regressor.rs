//! A regressor with an attention layer.

use super::model::{AnyError, Training};
use super::rows::{Task, narrow};
use super::{Evaluation, Findings, Moment, sizes};
use crate::{Error, Trial};
use bochner_attention::{Variant, mechanism::Inspection};
use bochner_datasets::RegressionSet;
use bochner_models::regressor::{self, LookAhead, RegressorConfig, Trainer, TrainingConfig};
use bochner_numerics::{Seed, Stream};
use bochner_report::Unit;
use bochner_report::row::{Heads, Shades};
use ndarray::{Array2, ArrayView2, Axis};
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

/// The settings of a regressor with an attention layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttentionSettings {
    /// The model.
    pub model: RegressorConfig,
    /// The norm of its attention's magnitudes; absent where it has no choice.
    pub p: Option<f64>,
    /// Its spectral points R; absent where it has none.
    pub points: Option<usize>,
    /// The training.
    pub training: TrainingConfig,
    /// Passes over the training rows.
    pub epochs: usize,
    /// Every how many rows of the data set are used; one for all.
    pub every: usize,
}

impl AttentionSettings {
    /// The settings of the released code for rows of so many inputs, with 8 heads and all rows.
    pub fn new(
        inputs: usize,
        attention: Variant,
        p: Option<f64>,
        points: Option<usize>,
        epochs: usize,
    ) -> Self {
        Self {
            model: RegressorConfig::new(inputs, attention),
            p,
            points,
            training: TrainingConfig::regression(),
            epochs,
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

/// The measures of attention weights, in the epoch of the V-number and after the last one.
pub type Look = fn(&Inspection<f32>) -> Findings;

/// Sets up the training.
pub(crate) fn start<'a>(
    unit: &Unit,
    task: Task<'a>,
    settings: &AttentionSettings,
    look: Option<Look>,
) -> Result<Rows<'a>, AnyError> {
    let attention = &settings.model.attention;
    without_order(attention, task.data.set)?;
    let (sees_order, has_weights) = (sees_order(attention), attention.card().weights.is_yes());
    let seed = Seed::new(unit.seed);
    let inputs = &task.data.inputs;
    let value = |(i, j): (usize, usize)| inputs.row(i)[j] as f32;
    let rows = regressor::Task::new(
        Array2::from_shape_fn((inputs.rows(), inputs.columns()), value),
        narrow(&task.data.target).into(),
        task.split.train.clone(),
    )?;
    let trainer = Trainer::new(&settings.model, &settings.training, rows, seed)?;
    Ok(Rows {
        trainer: LookAhead::new(trainer),
        task,
        look,
        order: sees_order.then(|| seed.stream("order of rows")),
        has_weights,
    })
}

pub(crate) struct Rows<'a> {
    trainer: LookAhead,
    task: Task<'a>,
    look: Option<Look>,
    /// Shuffles the rows for a model that sees their order.
    order: Option<Stream>,
    has_weights: bool,
}

impl Rows<'_> {
    /// The test error with the rows in another order, if the model sees it.
    fn control(&self) -> Result<Findings, AnyError> {
        let Some(stream) = &self.order else {
            return Ok(Findings::default());
        };
        let mut order: Vec<usize> = (0..self.task.data.target.len()).collect();
        order.shuffle(&mut stream.clone());
        let predicted = self.trainer.trainer().predict_in_order(&order)?;
        let predicted: Vec<f64> = predicted.iter().map(|&y| f64::from(y)).collect();
        let error = self.task.square_error(&predicted, &self.task.split.test);
        Ok(Findings::of([(PERMUTED, error.sqrt())]))
    }

    fn predict(&self) -> Result<Vec<f64>, AnyError> {
        let predicted = self.trainer.predict()?;
        Ok(predicted.iter().map(|&y| f64::from(y)).collect())
    }
}

impl Trial for Rows<'_> {
    fn model(&self) -> &dyn Training {
        &self.trainer
    }

    fn model_mut(&mut self) -> &mut dyn Training {
        &mut self.trainer
    }

    fn rows(&self) -> [usize; 3] {
        sizes(self.task.split)
    }

    fn evaluate(&self) -> Result<Evaluation, AnyError> {
        Ok(self.task.evaluate(&self.predict()?))
    }

    fn inspected(&self) -> &'static [Moment] {
        match self.look {
            Some(_) => &[Moment::OfV],
            None => &[],
        }
    }

    fn findings(&self, _: Moment, _: &dyn Fn() -> bool) -> Result<Findings, AnyError> {
        let mut findings = self.control()?;
        if let Some(shown) = self.task.predictions(&self.predict()?) {
            findings = findings.with("predictions", &shown);
        }
        let is_looked_at = self.task.is_pictured || self.look.is_some();
        if !is_looked_at || !self.has_weights {
            return Ok(findings);
        }
        let seen = self.trainer.trainer().inspect()?;
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
