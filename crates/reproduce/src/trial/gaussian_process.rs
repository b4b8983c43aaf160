//! A Gaussian process, one step up the evidence of the training rows an epoch.

use super::model::{AnyError, Training};
use super::rows::Task;
use super::{Evaluation, Findings, Moment, sizes};
use crate::Trial;
use bochner_gp::{EvidenceGradient, GaussianProcess, rbf_process, spectral_mixture_process};
use bochner_models::training::EpochReport;
use bochner_numerics::{Seed, argument};
use bochner_ops::{AdamConfig, AdamRule, Moments};
use bochner_report::Unit;
use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The settings of a Gaussian process with a constant mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessSettings {
    /// Its covariance function.
    pub covariance: Covariance,
    /// Steps up the evidence of the training rows.
    pub epochs: usize,
    /// Adam's step size.
    pub learning_rate: f64,
    /// Every how many rows of the data set are used; one for all.
    pub every: usize,
}

impl ProcessSettings {
    /// The settings of the released code.
    pub fn new(covariance: Covariance, epochs: usize, every: usize) -> Self {
        Self {
            covariance,
            epochs,
            learning_rate: 0.01,
            every,
        }
    }
}

/// The covariance function of a Gaussian process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kernel", rename_all = "kebab-case")]
pub enum Covariance {
    /// A multiple of a Gaussian with one lengthscale.
    Rbf,
    /// A spectral mixture, with frequencies and widths of its own in every dimension.
    SpectralMixture {
        /// The terms of the mixture.
        components: usize,
    },
}

/// Sets up the training.
pub(crate) fn start<'a>(
    unit: &Unit,
    task: Task<'a>,
    settings: &ProcessSettings,
) -> Result<Process<'a>, AnyError> {
    let rows = Rows::of(&task);
    let process = process(settings, &rows.train, Seed::new(unit.seed))?;
    let coordinates = process.coordinates();
    Ok(Process {
        standing: Standing::of(&process, &rows)?,
        task,
        rows,
        process,
        adam: AdamConfig {
            learning_rate: settings.learning_rate,
            ..AdamConfig::default()
        },
        moments: Moments::zeros(coordinates.len()),
        coordinates,
        epochs: 0,
    })
}

/// The starts of the terms of a spectral mixture, which are drawn on every split.
fn process(
    settings: &ProcessSettings,
    train: &Observations,
    seed: Seed,
) -> Result<GaussianProcess, bochner_gp::Error> {
    let (x, y) = (train.x.view(), train.y.view());
    match settings.covariance {
        Covariance::Rbf => rbf_process(x, y),
        Covariance::SpectralMixture { components } => {
            spectral_mixture_process(x, y, components, seed)
        }
    }
}

/// The rows trained on, and the inputs of all others.
struct Rows {
    train: Observations,
    train_rows: Vec<usize>,
    others: Array2<f64>,
    other_rows: Vec<usize>,
}

struct Observations {
    x: Array2<f64>,
    y: Array1<f64>,
}

impl Rows {
    fn of(task: &Task<'_>) -> Self {
        let data = task.data;
        let train_rows = task.split.train.clone();
        let other_rows = [&task.split.validation[..], &task.split.test].concat();
        let select = |rows: &[usize]| {
            let shape = (rows.len(), data.inputs.columns());
            Array2::from_shape_fn(shape, |(i, j)| data.inputs.row(rows[i])[j])
        };
        Self {
            train: Observations {
                x: select(&train_rows),
                y: train_rows.iter().map(|&i| data.target[i]).collect(),
            },
            others: select(&other_rows),
            train_rows,
            other_rows,
        }
    }
}

/// The results of one factor of the covariance matrix at the process's hyper-parameters.
struct Standing {
    gradient: EvidenceGradient,
    /// For all rows, in the order of the set.
    predicted: Vec<f64>,
}

impl Standing {
    fn of(process: &GaussianProcess, rows: &Rows) -> Result<Self, bochner_gp::Error> {
        let Observations { x, y } = &rows.train;
        let posterior = process.condition(x.view(), y.view())?;
        let mut predicted = vec![0.0; rows.train_rows.len() + rows.other_rows.len()];
        let fitted = rows.train_rows.iter().zip(posterior.fitted());
        let others = posterior.predict_mean(rows.others.view())?;
        for (&row, value) in fitted.chain(rows.other_rows.iter().zip(others)) {
            predicted[row] = value;
        }
        Ok(Self {
            gradient: posterior.evidence_gradient()?,
            predicted,
        })
    }
}

pub(crate) struct Process<'a> {
    task: Task<'a>,
    rows: Rows,
    process: GaussianProcess,
    adam: AdamConfig,
    /// The coordinates of the process. They are kept because the logarithm of an exponential is not the same to the
    /// last bit.
    coordinates: Vec<f64>,
    moments: Moments<f64>,
    standing: Standing,
    epochs: usize,
}

impl Training for Process<'_> {
    /// Reports on the process before its step.
    fn epoch(&mut self) -> Result<EpochReport, AnyError> {
        let (evidence, rows) = (self.standing.gradient.evidence, &self.rows);
        let observations = evidence.observations as f64;
        let pairs = rows.train_rows.iter().zip(&rows.train.y);
        let square = |(&row, y): (&usize, &f64)| (self.standing.predicted[row] - y).powi(2);
        let report = EpochReport {
            loss: -evidence.log_likelihood / observations,
            squared_error: pairs.map(square).sum::<f64>() / rows.train_rows.len() as f64,
            ..EpochReport::default()
        };
        let gradient = self.standing.gradient.coordinates.iter();
        let descent: Vec<f64> = gradient.map(|g| -g / observations).collect();
        let rule = AdamRule::new(&self.adam, self.adam.learning_rate, self.epochs as u64 + 1);
        rule.step(&mut self.coordinates, &mut self.moments, &descent);
        self.process.set_coordinates(&self.coordinates)?;
        self.standing = Standing::of(&self.process, &self.rows)?;
        self.epochs += 1;
        Ok(report)
    }

    fn epochs_done(&self) -> usize {
        self.epochs
    }

    fn parameters(&self) -> usize {
        self.process.parameters().len()
    }

    fn save(&self, path: &Path) -> Result<(), AnyError> {
        let Moments { first, second } = &self.moments;
        let saved: Saved = (
            self.epochs,
            [&self.coordinates, first, second].map(Vec::clone),
        );
        Ok(std::fs::write(path, serde_json::to_vec(&saved)?)?)
    }

    fn resume(&mut self, path: &Path) -> Result<(), AnyError> {
        let (epochs, numbers): Saved = serde_json::from_slice(&std::fs::read(path)?)?;
        for state in &numbers {
            argument::shape(
                "the state of Adam",
                &[self.coordinates.len()],
                &[state.len()],
            )?;
        }
        let [coordinates, first, second] = numbers;
        self.process.set_coordinates(&coordinates)?;
        self.standing = Standing::of(&self.process, &self.rows)?;
        self.moments = Moments { first, second };
        (self.coordinates, self.epochs) = (coordinates, epochs);
        Ok(())
    }
}

/// The state that the next epoch depends on: the epochs done, and the coordinates of the process with both moments of
/// Adam.
type Saved = (usize, [Vec<f64>; 3]);

impl Trial for Process<'_> {
    fn model(&self) -> &dyn Training {
        self
    }

    fn model_mut(&mut self) -> &mut dyn Training {
        self
    }

    fn rows(&self) -> [usize; 3] {
        sizes(self.task.split)
    }

    fn evaluate(&self) -> Result<Evaluation, AnyError> {
        Ok(self.task.evaluate(&self.standing.predicted))
    }

    fn findings(&self, _: Moment, _: &dyn Fn() -> bool) -> Result<Findings, AnyError> {
        let shown = self.task.predictions(&self.standing.predicted);
        let shown = shown.map(|shown| Findings::default().with("predictions", &shown));
        Ok(shown.unwrap_or_default())
    }
}
