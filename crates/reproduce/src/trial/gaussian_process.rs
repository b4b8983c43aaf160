//! A Gaussian process, one step up the evidence of the training rows an epoch.

use super::rows::Task;
use super::{Evaluation, Facts, Findings, Step};
use crate::store::read_json;
use crate::{Error, Trial};
use bochner_gp::{EvidenceGradient, GaussianProcess, rbf_process, spectral_mixture_process};
use bochner_numerics::{Seed, argument};
use bochner_ops::{AdamConfig, AdamRule, Moments};
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
    task: Task<'a>,
    settings: ProcessSettings,
) -> Result<Box<dyn Trial + 'a>, Error> {
    let rows = Rows::of(&task);
    let adam = AdamConfig {
        learning_rate: settings.learning_rate,
        ..AdamConfig::default()
    };
    let begin = || {
        let process = process(&settings, &rows.train, Seed::new(task.unit.seed))?;
        let standing = Standing::of(&process, &rows)?;
        Ok((process, standing))
    };
    let begun: Result<_, bochner_gp::Error> = begin();
    let (process, standing) = begun.map_err(|error| task.failed(&error))?;
    let coordinates = process.coordinates();
    Ok(Box::new(Process {
        task,
        rows,
        process,
        adam,
        moments: Moments::zeros(coordinates.len()),
        coordinates,
        standing,
        epochs: 0,
    }))
}

/// Where the terms of a spectral mixture start is drawn anew on every split.
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

/// What one factor of the covariance matrix gives, where the process stands.
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

struct Process<'a> {
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

/// What the next epoch depends on.
#[derive(Serialize, Deserialize)]
struct Saved {
    unit: String,
    epochs: usize,
    parameters: Vec<f64>,
    coordinates: Vec<f64>,
    /// The first and the second moments of Adam.
    moments: [Vec<f64>; 2],
}

impl Process<'_> {
    fn step(&mut self) -> Result<(), bochner_gp::Error> {
        let gradient = &self.standing.gradient;
        let observations = gradient.evidence.observations as f64;
        let descent = gradient.coordinates.iter().map(|g| -g / observations);
        let descent: Vec<f64> = descent.collect();
        let rule = AdamRule::new(&self.adam, self.adam.learning_rate, self.epochs as u64 + 1);
        rule.step(&mut self.coordinates, &mut self.moments, &descent);
        self.process.set_coordinates(&self.coordinates)?;
        self.standing = Standing::of(&self.process, &self.rows)?;
        self.epochs += 1;
        Ok(())
    }

    fn go_on(&mut self, saved: Saved) -> Result<(), bochner_gp::Error> {
        self.process.set_parameters(&saved.parameters)?;
        self.standing = Standing::of(&self.process, &self.rows)?;
        let [first, second] = saved.moments;
        let count = self.coordinates.len();
        for state in [&saved.coordinates, &first, &second] {
            argument::shape("the state of Adam", &[count], &[state.len()])?;
        }
        self.moments = Moments { first, second };
        (self.coordinates, self.epochs) = (saved.coordinates, saved.epochs);
        Ok(())
    }
}

impl Trial for Process<'_> {
    fn facts(&self) -> Facts {
        self.task.facts(self.process.parameters().len())
    }

    fn epoch(&mut self) -> Result<Step, Error> {
        let evidence = self.standing.gradient.evidence;
        let train = &self.rows.train_rows;
        let before = Step {
            loss: -evidence.log_likelihood / evidence.observations as f64,
            mse: self.task.square_error(&self.standing.predicted, train),
        };
        self.step().map_err(|error| self.task.failed(&error))?;
        Ok(before)
    }

    fn evaluate(&self) -> Result<Evaluation, Error> {
        Ok(self.task.evaluate(&self.standing.predicted))
    }

    fn save(&self, path: &Path) -> Result<(), Error> {
        let parameters = self.process.parameters().into_iter();
        let saved = Saved {
            unit: self.task.unit.id(),
            epochs: self.epochs,
            parameters: parameters.map(|p| p.value).collect(),
            coordinates: self.coordinates.clone(),
            moments: [self.moments.first.clone(), self.moments.second.clone()],
        };
        let saved = serde_json::to_vec(&saved).expect("plain numbers");
        std::fs::write(path, saved).map_err(Error::io("write", path))
    }

    fn resume(&mut self, path: &Path) -> Result<(), Error> {
        let refused = |message: String| Error::Checkpoint {
            path: path.to_owned(),
            message,
        };
        let saved: Option<Saved> = read_json(path)?;
        let saved = saved.ok_or_else(|| refused("it is not there".to_owned()))?;
        if saved.unit != self.task.unit.id() {
            return Err(refused(format!("it is that of {}", saved.unit)));
        }
        self.go_on(saved)
            .map_err(|error| refused(error.to_string()))
    }

    fn epochs_done(&self) -> usize {
        self.epochs
    }

    fn findings(&self) -> Result<Findings, Error> {
        let shown = self.task.predictions(&self.standing.predicted);
        let shown = shown.map(|shown| Findings::default().with("predictions", &shown));
        Ok(shown.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suites::REGRESSION;
    use crate::suites::tests::plan;
    use bochner_datasets::{
        DataStore, Policy, Protocol, RegressionData, RegressionSet, Rows as Which, load,
    };
    use bochner_report::Scale;
    use bochner_report::Unit;

    fn passenger() -> RegressionData {
        let store = DataStore::new(Policy::Offline);
        load(RegressionSet::Passenger, Protocol::P10, Which::All, &store).unwrap()
    }

    fn unit(model: &str) -> Unit {
        let plan = plan(&REGRESSION, Scale::Smoke);
        plan.claimed("Passenger", model).unwrap().units[1].clone()
    }

    fn begin<'a>(unit: &Unit, data: &'a RegressionData) -> Box<dyn Trial + 'a> {
        let task = Task::of(unit, data).unwrap();
        start(task, unit.settings.read().unwrap()).unwrap()
    }

    #[test]
    fn a_resumed_process_goes_on_with_the_same_bits() {
        let data = passenger();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("process");
        for model in ["GP (RBF)", "GP (SM)"] {
            let start = || begin(&unit(model), &data);
            let (mut whole, mut resumed) = (start(), start());
            for _ in 0..3 {
                whole.epoch().unwrap();
            }
            whole.save(&path).unwrap();
            resumed.resume(&path).unwrap();
            assert_eq!(resumed.epochs_done(), 3);
            for _ in 0..4 {
                assert_eq!(whole.epoch().unwrap(), resumed.epoch().unwrap());
                assert_eq!(whole.evaluate().unwrap(), resumed.evaluate().unwrap());
            }
        }
        let mut other = begin(&unit("GP (RBF)"), &data);
        assert!(matches!(other.resume(&path), Err(Error::Checkpoint { .. })));
    }

    #[test]
    fn errors_are_those_of_steps_by_hand() {
        let data = passenger();
        let unit = unit("GP (RBF)");
        let split = &data.splits[unit.split];
        let column = |rows: &[usize]| {
            Array2::from_shape_fn((rows.len(), 1), |(i, _)| data.inputs.row(rows[i])[0])
        };
        let target = |rows: &[usize]| {
            rows.iter()
                .map(|&i| data.target[i])
                .collect::<Array1<f64>>()
        };
        let (x, y) = (column(&split.train), target(&split.train));
        let mut seen = Vec::new();
        let mut process = rbf_process(x.view(), y.view()).unwrap();
        let mut coordinates = process.coordinates();
        let mut moments = Moments::zeros(coordinates.len());
        let adam = AdamConfig {
            learning_rate: 0.01,
            ..AdamConfig::default()
        };
        for taken in 1..=5 {
            let posterior = process.condition(x.view(), y.view()).unwrap();
            let error = |rows: &[usize]| {
                let predicted = posterior.predict(column(rows).view()).unwrap().mean;
                let square = (predicted - target(rows)).mapv(|e| e * e);
                square.mean().unwrap()
            };
            let gradient = posterior.evidence_gradient().unwrap();
            let each = gradient.evidence.log_likelihood / y.len() as f64;
            seen.push((
                each,
                [&split.train, &split.validation, &split.test].map(|r| error(r)),
            ));
            let descent = gradient.coordinates.iter().map(|g| -g / y.len() as f64);
            let descent: Vec<f64> = descent.collect();
            AdamRule::new(&adam, 0.01, taken).step(&mut coordinates, &mut moments, &descent);
            process.set_coordinates(&coordinates).unwrap();
        }

        let mut trial = begin(&unit, &data);
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        for points in seen.windows(2) {
            let step = trial.epoch().unwrap();
            close(step.loss, -points[0].0);
            close(step.mse, points[0].1[0]);
            let evaluation = trial.evaluate().unwrap();
            close(evaluation.validation.unwrap().powi(2), points[1].1[1]);
            close(evaluation.test.powi(2), points[1].1[2]);
        }
        assert_eq!(trial.facts().parameters, 4);
    }
}
