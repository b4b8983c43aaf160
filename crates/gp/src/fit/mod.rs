//! Fitting the hyper-parameters: the evidence is maximised by L-BFGS or by Adam.

mod climb;
mod prior;

pub(crate) use climb::{Likelihood, Slope, Spreads};
pub use prior::Prior;

use crate::{Error, Evidence, GaussianProcess};
use bochner_numerics::{ArgumentError, Seed, argument};
use bochner_ops::{
    AdamConfig, AdamRule, LbfgsConfig, LbfgsReport, Moments, Objective, Stop, largest_projected,
    lbfgs,
};
use climb::{Climb, Space};
use ndarray::{Array2, ArrayView1, ArrayView2};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;

/// The settings of [`GaussianProcess::fit`] and [`SparseProcess::fit`](crate::SparseProcess::fit).
///
/// # Example
/// ```
/// use bochner_gp::{FitConfig, Optimiser};
///
/// let config = FitConfig { restarts: 4, fixed: vec!["mean".to_owned()], ..FitConfig::default() };
/// assert_eq!(config.optimiser, Optimiser::Lbfgs);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    rename_all = "kebab-case",
    remote = "Self"
)]
pub struct FitConfig {
    /// The rule of the steps; L-BFGS by default.
    pub optimiser: Optimiser,
    /// The largest number of steps from each start; 1000 by default.
    pub steps: usize,
    /// The fit has converged where no component of the gradient is larger; `1e-4` by default. The components are
    /// those along logarithms of positive parameters, along the mean in standard deviations of the targets, and
    /// along frequencies in cycles per standard deviation of their input. L-BFGS has converged as well where ten steps
    /// raise the objective by at most 1e-7 of it, as along a parameter that tends to infinity.
    pub tolerance: f64,
    /// The number of starts at random, beside the one at the present parameters; 0 by default. Each coordinate is
    /// drawn around the present one, with a standard deviation of 1.5 in the units of `tolerance`.
    #[doc(alias = "n_restarts_optimizer")]
    pub restarts: usize,
    /// The seed of these starts; 0 by default.
    pub seed: u64,
    /// The names of the hyper-parameters that stay as they are, such as `mean` or `kernel.base.lengthscale`;
    /// `inducing` for all inducing points of a sparse process. None by default.
    pub fixed: Vec<String>,
    /// The priors of hyper-parameters, by name; none by default.
    pub priors: BTreeMap<String, Prior>,
    /// The least noise, as a share of the variance of the targets; `1e-8` by default. A process that starts with
    /// less noise may keep it.
    pub noise_floor: f64,
}

/// The rule of the steps of a fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Optimiser {
    /// L-BFGS: few steps. Each is checked to lead up.
    #[default]
    Lbfgs,
    /// Adam on the gradient per observation: many small steps, some of which lead down.
    Adam(AdamConfig),
}

impl Default for FitConfig {
    fn default() -> Self {
        Self {
            optimiser: Optimiser::Lbfgs,
            steps: 1000,
            tolerance: 1e-4,
            restarts: 0,
            seed: 0,
            fixed: Vec::new(),
            priors: BTreeMap::new(),
            noise_floor: 1e-8,
        }
    }
}

bochner_numerics::checked_when_read!(FitConfig, check);

impl FitConfig {
    fn check(&self) -> Result<(), ArgumentError> {
        argument::non_negative("tolerance", self.tolerance)?;
        argument::non_negative("noise_floor", self.noise_floor)?;
        if let Optimiser::Adam(adam) = &self.optimiser {
            adam.validate::<f64>()?;
        }
        self.priors.values().try_for_each(Prior::check)
    }
}

/// The report of a fit: the best of its starts.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The reason why the best start ended; [`Stop::is_converged`] tells whether it is a maximum.
    pub stop: Stop,
    /// The largest component of the gradient at the best point, in the units of [`FitConfig::tolerance`]; zero along
    /// a noise that is held by its floor.
    pub gradient: f64,
    /// The path of the best start: one entry at the start and one after each step.
    pub trace: Vec<Step>,
    /// The index of the entry with the largest objective, at which the process was left.
    pub best: usize,
    /// The end of every start, the one at the present parameters first; `None` where a start had no likelihood.
    pub starts: Vec<Option<Start>>,
}

/// The end of one start of a fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Start {
    /// The reason why it ended.
    pub stop: Stop,
    /// The best objective.
    pub objective: f64,
    /// The number of evaluations of the likelihood with its gradient.
    pub evaluations: usize,
}

/// One point of the path of a fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The evidence, or the bound on it, with the jitter that was needed.
    pub evidence: Evidence,
    /// The logarithm of the likelihood and of the priors.
    pub objective: f64,
    /// The Euclidean norm of the gradient of the objective, in the units of [`FitConfig::tolerance`].
    pub gradient_norm: f64,
}

impl Fit {
    /// The evidence at the best point.
    pub fn evidence(&self) -> Evidence {
        self.trace[self.best].evidence
    }
}

impl fmt::Display for Fit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, steps) = (self.evidence().log_likelihood, self.trace.len() - 1);
        let (stop, gradient, starts) = (self.stop, self.gradient, self.starts.len());
        write!(
            f,
            "{stop}; ln p = {value}, largest component of the gradient {gradient:.1e}, {steps} steps, best of \
             {starts} starts"
        )
    }
}

impl GaussianProcess {
    /// Maximises the [`evidence`](Self::evidence) of `y: [n]` at `x: [n, d]`, and the priors if there are any, from
    /// the present parameters and from [`FitConfig::restarts`] others.
    ///
    /// Positive parameters move as logarithms, the mean and frequencies in units of the data's spread, so that the
    /// units of the data do not matter. A free mean without a prior starts at its best value for the other
    /// parameters (generalised least squares). The process is left at the best point.
    ///
    /// A process that begins symmetric stays symmetric: components of a spectral mixture that start alike have the
    /// same gradient at every step, and stay alike for ever.
    ///
    /// # Errors
    /// [`Error::Argument`] without observations or for settings outside their range;
    /// [`Error::UnknownParameter`] for a name that the process does not have; those of
    /// [`evidence`](Self::evidence) if no start has a likelihood; [`Error::NoImprovement`] if no step improved on
    /// the start, which is no maximum. The process is then as it was.
    ///
    /// # Reference
    /// Rasmussen, Williams, 2006, section 5.4.1; Liu, Nocedal, 1989; Kingma, Ba, 2015.
    pub fn fit(
        &mut self,
        x: ArrayView2<f64>,
        y: ArrayView1<f64>,
        config: &FitConfig,
    ) -> Result<Fit, Error> {
        self.fit_observed(x, y, config, |_, _| ControlFlow::Continue(()))
    }

    /// A [`fit`](Self::fit) that calls `observe` at every point of the paths and ends a start if it breaks: for
    /// early stopping, progress, or the error on other data.
    ///
    /// # Errors
    /// The errors of [`fit`](Self::fit).
    pub fn fit_observed(
        &mut self,
        x: ArrayView2<f64>,
        y: ArrayView1<f64>,
        config: &FitConfig,
        mut observe: impl FnMut(&Self, &Step) -> ControlFlow<()>,
    ) -> Result<Fit, Error> {
        argument::not_empty("y", y.shape())?;
        let observed = self.observe(x, y)?;
        let spreads = Spreads::new(x, y);
        let mut moved = self.clone();
        if Space::new(self, None, &spreads, config)?.frees_mean() && config.steps > 0 {
            moved.mean += observed.mean_shift()?;
        }
        let mut slope = |process: &Self, _: ArrayView2<f64>| {
            let gradient = process.evidence_gradient(x, y)?;
            Ok(Slope {
                evidence: gradient.evidence,
                coordinates: gradient.coordinates,
                inducing: Vec::new(),
            })
        };
        let mut none = Array2::zeros((0, x.ncols()));
        let climbs = Climbs {
            spreads: &spreads,
            config,
            slope: &mut slope,
            observe: &mut observe,
        };
        let fit = climbs.run(&mut moved, &mut none)?;
        *self = moved;
        Ok(fit)
    }
}

/// The climbs from all starts.
pub(crate) struct Climbs<'a> {
    pub(crate) spreads: &'a Spreads,
    pub(crate) config: &'a FitConfig,
    pub(crate) slope: &'a mut Likelihood<'a>,
    pub(crate) observe: &'a mut dyn FnMut(&GaussianProcess, &Step) -> ControlFlow<()>,
}

impl Climbs<'_> {
    /// Leaves the process and the inducing points at the best place of all climbs. Without inducing points there
    /// is none to move.
    pub(crate) fn run(
        self,
        process: &mut GaussianProcess,
        inducing: &mut Array2<f64>,
    ) -> Result<Fit, Error> {
        self.config.check()?;
        let moved = (!inducing.is_empty()).then_some((inducing.len(), self.spreads));
        let space = Space::new(process, moved, self.spreads, self.config)?;
        let points = inducing.as_slice().expect("allocated in row-major order");
        let first = space.place(process, points);
        let (mut best, mut refused, mut starts): (Option<(Vec<f64>, Fit)>, _, _) =
            (None, None, Vec::new());
        for restart in 0..=self.config.restarts {
            let start = match restart {
                0 => first.clone(),
                _ => space.around(&first, Seed::new(self.config.seed).nth(restart as u64)),
            };
            let mut climb = Climb {
                space: &space,
                process: &mut *process,
                inducing: inducing.view_mut(),
                slope: &mut *self.slope,
                observe: &mut *self.observe,
                trace: Vec::new(),
                refused: None,
                seen: Vec::new(),
            };
            let ended = match climb.run(self.config, start) {
                Ok(ended) => ended,
                Err(error) => {
                    refused.get_or_insert(error);
                    starts.push(None);
                    continue;
                }
            };
            let (place, fit) = ended;
            starts.push(fit.starts[0]);
            let better = |(_, best): &(_, Fit)| fit.top() > best.top();
            if best.as_ref().is_none_or(better) {
                best = Some((place, fit));
            }
        }
        let Some((place, mut fit)) = best else {
            return Err(refused.expect("a start that failed"));
        };
        fit.starts = starts;
        space.go(&place, process, inducing.as_slice_mut().expect("row-major"))?;
        Ok(fit)
    }
}

impl Climb<'_> {
    /// Climbs from a place to the best one.
    fn run(&mut self, settings: &FitConfig, mut place: Vec<f64>) -> Result<(Vec<f64>, Fit), Error> {
        let config = LbfgsConfig {
            steps: settings.steps,
            tolerance: settings.tolerance,
            // More than most kernels have parameters, so that the curvature along all of them is known. A period and
            // an amplitude differ in it by a factor of a million.
            memory: 40,
            // The rounding of the likelihood of a covariance matrix of a large condition is not far below.
            relative_change: 1e-7,
        };
        let bounds = &self.space.bounds;
        let ended = match &settings.optimiser {
            Optimiser::Lbfgs => lbfgs(&mut place, bounds, &config, self),
            Optimiser::Adam(adam) => steps_of_adam(&mut place, adam, &config, self),
        };
        let report = ended.map_err(|error| self.refused.take().unwrap_or(error.into()))?;
        let trace = std::mem::take(&mut self.trace);
        let best = (0..trace.len()).fold(0, |best, i| {
            match trace[i].objective > trace[best].objective {
                true => i,
                false => best,
            }
        });
        if best == 0 && settings.steps > 0 && matches!(report.stop, Stop::NoStep | Stop::Steps) {
            return Err(self.refused.take().unwrap_or(Error::NoImprovement {
                log_likelihood: trace[0].evidence.log_likelihood,
                gradient_norm: trace[0].gradient_norm,
            }));
        }
        let start = Start {
            stop: report.stop,
            objective: trace[best].objective,
            evaluations: report.evaluations,
        };
        let fit = Fit {
            stop: report.stop,
            gradient: report.gradient,
            trace,
            best,
            starts: vec![Some(start)],
        };
        Ok((place, fit))
    }
}

impl Fit {
    fn top(&self) -> f64 {
        self.trace[self.best].objective
    }
}

/// Minimises by Adam, from `place`, which is left at the best place.
fn steps_of_adam(
    place: &mut [f64],
    adam: &AdamConfig,
    config: &LbfgsConfig,
    climb: &mut Climb,
) -> Result<LbfgsReport, ArgumentError> {
    let (mut now, mut gradient) = (place.to_vec(), vec![0.0; place.len()]);
    let (mut moments, mut best, mut norm) = (Moments::zeros(place.len()), f64::INFINITY, 0.0);
    let mut taken = 0;
    let stop = loop {
        let value = climb.evaluate(&now, &mut gradient);
        if !value.is_finite() {
            argument::in_range(taken > 0, "the value at the start", value, "finite")?;
            break Stop::NoStep;
        }
        let bounds = &climb.space.bounds;
        let largest = largest_projected(&now, &gradient, bounds);
        if value < best {
            (best, norm) = (value, largest);
            place.copy_from_slice(&now);
        }
        let observations = climb
            .seen
            .last()
            .map_or(1, |(_, step)| step.evidence.observations);
        if climb.accept(&now, value).is_break() {
            break Stop::Observer;
        }
        if largest <= config.tolerance {
            break Stop::Converged;
        }
        if taken == config.steps {
            break Stop::Steps;
        }
        taken += 1;
        let each: Vec<f64> = gradient.iter().map(|g| g / observations as f64).collect();
        AdamRule::new(adam, adam.learning_rate, taken as u64).step(&mut now, &mut moments, &each);
        now.iter_mut()
            .zip(&climb.space.bounds)
            .for_each(|(p, (l, u))| *p = p.clamp(*l, *u));
    };
    let evaluations = taken + 1;
    Ok(LbfgsReport {
        stop,
        value: best,
        gradient: norm,
        steps: taken,
        evaluations,
    })
}
