//! Attention between datapoints: tables in which rows have copies, and regression on tables.

use super::model::{AnyError, Training};
use super::rows;
use super::{Evaluation, Findings, Moment, read_settings, sizes};
use crate::Trial;
use crate::suite::Source;
use bochner_datasets::RegressionData;
use bochner_models::datapoints::{Cell, Column, Example, Masking, NptConfig, Table, Task, Trainer};
use bochner_models::training::TrainingConfig;
use bochner_numerics::{Seed, standard_normal};
use bochner_report::Unit;
use bochner_report::statistics::{mean, population_deviation};
use ndarray::{Array2, s};
use serde::{Deserialize, Serialize};

/// The distance by which the prediction of a copy moves when the visible target of a row is shifted, in units of the
/// shift.
pub const FOLLOWED: &str = "share of a shift that the copy follows";
/// 1 less the distance of that share from 1: a copy that moves too far agrees no better than one that stays behind.
pub const AGREES: &str = "agreement of the copy's move with the shift";
/// One less the mean move of the predictions of all other rows, in units of the shift.
pub const STILL: &str = "share of a shift that others resist";
/// The mean squared error after the features of visible rows were rotated, column by column, over the targets'
/// variance.
pub const CORRUPTED: &str = "error after corruption";

/// By how much an intervention shifts a target.
const SHIFT: f32 = 1.5;

/// The settings of a non-parametric Transformer and its training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NptSettings {
    /// The model.
    pub model: NptConfig,
    /// The training.
    pub training: TrainingConfig,
    /// Passes over the tables.
    pub epochs: usize,
    /// The task.
    #[serde(flatten)]
    pub learnt: Learnt,
}

/// The task of a non-parametric Transformer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Learnt {
    /// To look up targets in rows that are copies of others.
    Copies(Copies),
    /// A regression data set.
    Rows {
        /// The chance that a training target is hidden in a step.
        target_rate: f64,
        /// The chance that a feature is masked in a step.
        feature_rate: f64,
    },
}

/// Tables in which every row has a copy: one shows its target, the other hides it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Copies {
    /// Tables to learn from; each epoch goes through them. As many as one eighth are for validation, and for test.
    pub tables: usize,
    /// Pairs of rows in a table.
    pub pairs: usize,
    /// Features of a row: independent normal numbers. The targets are such numbers too, independent of the features.
    pub features: usize,
    /// The difference of the hidden target and the visible one.
    pub added: f32,
}

impl Copies {
    /// The table of this seed, and the hidden targets.
    fn draw(&self, seed: Seed) -> (Array2<f32>, Vec<Cell>) {
        let (mut stream, columns) = (seed.stream("table"), self.features + 1);
        let mut values = Array2::zeros((2 * self.pairs, columns));
        let wanted = (0..self.pairs).map(|pair| {
            let (shown, hidden) = (2 * pair, 2 * pair + 1);
            for column in 0..self.features {
                let value: f32 = standard_normal(&mut stream);
                values[[shown, column]] = value;
                values[[hidden, column]] = value;
            }
            values[[shown, self.features]] = standard_normal(&mut stream);
            let target = values[[shown, self.features]] + self.added;
            ([hidden, self.features], target)
        });
        let wanted = wanted.collect();
        (values, wanted)
    }

    /// The table with every second target hidden.
    fn table(&self, values: Array2<f32>) -> Table {
        let last = self.features;
        let is_known = Array2::from_shape_fn(values.dim(), |(i, j)| j < last || i % 2 == 0);
        let columns = vec![Column::Number; self.features + 1];
        Table::new(columns, values, is_known).expect("numbers in every column")
    }

    /// Rotates the features of the visible rows, each column by another number of them.
    fn rotate(&self, values: &mut Array2<f32>) {
        for column in 0..self.features {
            let mut visible = values.slice(s![..;2, column]).to_vec();
            visible.rotate_right((1 + column) % self.pairs);
            let places = values.slice_mut(s![..;2, column]);
            places
                .into_iter()
                .zip(visible)
                .for_each(|(place, value)| *place = value);
        }
    }

    fn held_out(&self) -> usize {
        (self.tables / 8).max(1)
    }
}

/// Draws tables of copies for each unit.
pub(crate) struct DrawnCopies;

impl Source for DrawnCopies {
    fn start<'a>(&'a self, unit: &Unit) -> Result<Box<dyn Trial + 'a>, AnyError> {
        Ok(Box::new(look_up(unit)?))
    }
}

/// Draws the tables that a unit learns from.
fn look_up(unit: &Unit) -> Result<LookUp, AnyError> {
    let settings: NptSettings = read_settings(unit)?;
    let Learnt::Copies(copies) = settings.learnt else {
        return Err("its settings are those of a data set".into());
    };
    let seed = Seed::new(unit.seed);
    let examples = (0..copies.tables as u64).map(|i| {
        let (values, wanted) = copies.draw(seed.child("training").nth(i));
        Example::new(copies.table(values), wanted)
    });
    let task = Task::new(examples.collect::<Result<_, _>>()?, Masking::NONE)?;
    Ok(LookUp {
        trainer: Trainer::new(&settings.model, &settings.training, task, seed)?,
        copies,
        seed,
    })
}

/// The order of the features of visible rows, as drawn or rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Features {
    AsDrawn,
    /// Each column is rotated by a number of visible rows of its own, so that no row has a copy.
    Rotated,
}

struct LookUp {
    trainer: Trainer,
    copies: Copies,
    seed: Seed,
}

impl LookUp {
    /// The mean squared error over the tables of a part, over the variance of what was to be predicted.
    fn error(&self, part: &str, features: Features) -> Result<f64, AnyError> {
        let (mut apart, mut truths) = (0.0, Vec::new());
        for i in 0..self.copies.held_out() as u64 {
            let (mut values, wanted) = self.drawn(part, i);
            if features == Features::Rotated {
                self.copies.rotate(&mut values);
            }
            let predicted = self.predict(values)?;
            for ([row, _], truth) in wanted {
                apart += (f64::from(predicted[row]) - f64::from(truth)).powi(2);
                truths.push(f64::from(truth));
            }
        }
        let mean = mean(&truths)?;
        let squares = truths.iter().map(|truth| (truth - mean).powi(2));
        Ok(apart / squares.sum::<f64>())
    }

    /// The table of this number of a part, and its hidden targets.
    fn drawn(&self, part: &str, number: u64) -> (Array2<f32>, Vec<Cell>) {
        self.copies.draw(self.seed.child(part).nth(number))
    }

    /// Shifts the visible target of the first row of each test table and measures how far the prediction of its
    /// copy follows, and how far others stay where they were.
    fn intervention(&self) -> Result<[f64; 2], AnyError> {
        let (mut followed, mut moved, mut others) = (0.0, 0.0, 0);
        let tables = self.copies.held_out() as u64;
        for i in 0..tables {
            let (values, wanted) = self.drawn("test", i);
            let mut shifted = values.clone();
            shifted[[0, self.copies.features]] += SHIFT;
            let (before, after) = (self.predict(values)?, self.predict(shifted)?);
            let move_of = |row: usize| f64::from((after[row] - before[row]) / SHIFT);
            followed += move_of(1);
            for ([row, _], _) in wanted.into_iter().skip(1) {
                moved += move_of(row).abs();
                others += 1;
            }
        }
        Ok([
            followed / tables as f64,
            1.0 - moved / f64::from(others.max(1)),
        ])
    }

    /// The targets that a model predicts for the rows of a table, every second of which is hidden.
    fn predict(&self, values: Array2<f32>) -> Result<Vec<f32>, AnyError> {
        let table = self.copies.table(values);
        let predicted = self.trainer.predict(&table, self.copies.features)?;
        Ok(predicted.into_iter().collect())
    }
}

impl Trial for LookUp {
    fn model(&self) -> &dyn Training {
        &self.trainer
    }

    fn model_mut(&mut self) -> &mut dyn Training {
        &mut self.trainer
    }

    fn rows(&self) -> [usize; 3] {
        let held_out = self.copies.held_out();
        [self.copies.tables, held_out, held_out].map(|tables| tables * self.copies.pairs)
    }

    fn evaluate(&self) -> Result<Evaluation, AnyError> {
        Ok(Evaluation {
            validation: Some(self.error("validation", Features::AsDrawn)?),
            test: self.error("test", Features::AsDrawn)?,
            ..Evaluation::default()
        })
    }

    fn findings(&self, _: Moment, _: &dyn Fn() -> bool) -> Result<Findings, AnyError> {
        let [followed, still] = self.intervention()?;
        let corrupted = self.error("test", Features::Rotated)?;
        Ok(Findings::of([
            (FOLLOWED, followed),
            (AGREES, agreement(followed)),
            (STILL, still),
            (CORRUPTED, corrupted),
        ]))
    }
}

fn agreement(followed: f64) -> f64 {
    1.0 - (1.0 - followed).abs()
}

/// A regression data set as one table, in which the targets of validation and test are hidden.
pub(super) struct HiddenTargets<'a> {
    trainer: Trainer,
    task: rows::Task<'a>,
    table: Table,
    /// The mean and the standard deviation of the training targets.
    scale: [f64; 2],
}

/// Sets up a model of the rows.
pub(super) fn hidden_targets<'a>(
    unit: &Unit,
    task: rows::Task<'a>,
    settings: &NptSettings,
) -> Result<HiddenTargets<'a>, AnyError> {
    let Learnt::Rows {
        target_rate,
        feature_rate,
    } = settings.learnt
    else {
        return Err("its settings are those of tables of copies".into());
    };
    let (table, scale) = standardised(task.data, &task.split.train)?;
    let masking = Masking {
        targets: vec![table.columns().len() - 1],
        target_rate,
        feature_rate,
        feature_weight: if feature_rate > 0.0 { 1.0 } else { 0.0 },
        steps: settings.epochs as u64,
    };
    let learnt = Task::new(vec![Example::new(table.clone(), Vec::new())?], masking)?;
    let seed = Seed::new(unit.seed);
    Ok(HiddenTargets {
        trainer: Trainer::new(&settings.model, &settings.training, learnt, seed)?,
        task,
        table,
        scale,
    })
}

/// The inputs and the target as columns with mean 0 and deviation 1: of inputs over all rows, of the target over those
/// to train on, which alone are known.
fn standardised(data: &RegressionData, train: &[usize]) -> Result<(Table, [f64; 2]), AnyError> {
    let (rows, inputs) = (data.inputs.rows(), data.inputs.columns());
    let all: Vec<usize> = (0..rows).collect();
    let mut values = Array2::zeros((rows, inputs + 1));
    let mut scale = [0.0, 1.0];
    for column in 0..=inputs {
        let is_target = column == inputs;
        let value = |i: usize| match is_target {
            true => data.target[i],
            false => data.inputs.row(i)[column],
        };
        let among = if is_target { train } else { &all };
        let known: Vec<f64> = among.iter().map(|&i| value(i)).collect();
        let (mean, deviation) = (mean(&known)?, population_deviation(&known)?);
        // A constant column stays at zero.
        let deviation = if deviation > 0.0 { deviation } else { 1.0 };
        for i in 0..rows {
            values[[i, column]] = ((value(i) - mean) / deviation) as f32;
        }
        if is_target {
            scale = [mean, deviation];
        }
    }
    let mut is_known = Array2::from_elem(values.dim(), true);
    is_known.column_mut(inputs).fill(false);
    train.iter().for_each(|&i| is_known[[i, inputs]] = true);
    let columns = vec![Column::Number; inputs + 1];
    Ok((Table::new(columns, values, is_known)?, scale))
}

impl HiddenTargets<'_> {
    /// The prediction of each row, in the unit of the targets.
    fn predictions(&self) -> Result<Vec<f64>, bochner_models::Error> {
        let target = self.table.columns().len() - 1;
        let predicted = self.trainer.predict(&self.table, target)?;
        let [mean, deviation] = self.scale;
        let of_scale = |&y: &f32| mean + deviation * f64::from(y);
        Ok(predicted.iter().map(of_scale).collect())
    }
}

impl Trial for HiddenTargets<'_> {
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
        Ok(self.task.evaluate(&self.predictions()?))
    }
}
