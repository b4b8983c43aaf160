//! Fitting the hyper-parameters: Adam maximises the evidence.

use crate::{Ascent, Error, Evidence, GaussianProcess};
use bochner_numerics::{ArgumentError, argument};
use ndarray::{ArrayView1, ArrayView2};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// The settings of [`GaussianProcess::fit`].
///
/// # Example
/// ```
/// let brief = bochner_gp::FitConfig { steps: 100, ..Default::default() };
/// assert_eq!(brief.learning_rate, 0.01);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    rename_all = "kebab-case",
    remote = "Self"
)]
pub struct FitConfig {
    /// The number of steps; 1000 by default.
    pub steps: usize,
    /// The size of the first step in each coordinate, and about that of the others; 0.01 by default.
    #[serde(alias = "learning_rate")]
    pub learning_rate: f64,
    /// The decay rates of the averages of the gradient and of its square; (0.9, 0.999) by default.
    pub betas: (f64, f64),
    /// The number that is added to the denominator of a step; 1e-8 by default.
    pub epsilon: f64,
}

impl Default for FitConfig {
    fn default() -> Self {
        Self {
            steps: 1000,
            learning_rate: 0.01,
            betas: (0.9, 0.999),
            epsilon: 1e-8,
        }
    }
}

bochner_numerics::checked_when_read!(FitConfig, check);

impl FitConfig {
    pub(crate) fn check(&self) -> Result<(), ArgumentError> {
        argument::positive("learning_rate", self.learning_rate)?;
        argument::positive("epsilon", self.epsilon)?;
        argument::rate("betas.0", self.betas.0)?;
        argument::rate("betas.1", self.betas.1)
    }
}

/// The path of a fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// One entry before each step and one after the last.
    pub trace: Vec<Step>,
    /// The index of the entry with the largest evidence, at which the process was left.
    pub best: usize,
}

/// One point of the path of a fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The evidence, with the jitter that was needed.
    pub evidence: Evidence,
    /// The Euclidean norm of the gradient of the evidence along the coordinates.
    pub gradient_norm: f64,
}

impl GaussianProcess {
    /// Maximises the [`evidence`](Self::evidence) of `y: [n]` at `x: [n, d]` by Adam, from the present
    /// parameters.
    ///
    /// The steps are those of an [`Ascent`], which takes them one at a time. The process is left at
    /// the best point seen, which need not be the last, because a step of Adam can lead down. A process
    /// that begins symmetric stays symmetric: components of a spectral mixture that start alike have
    /// the same gradient at every step, and stay alike for ever.
    ///
    /// # Errors
    /// [`Error::Argument`] without observations or for settings outside their range;
    /// [`Error::Coordinate`] if a step leads out of the parameters' domain; those of
    /// [`evidence`](Self::evidence) at any step. The process is then left at the best point seen
    /// before.
    ///
    /// # Reference
    /// Kingma, Ba, *Adam: a method for stochastic optimization*, ICLR 2015.
    pub fn fit(
        &mut self,
        x: ArrayView2<f64>,
        y: ArrayView1<f64>,
        config: &FitConfig,
    ) -> Result<Fit, Error> {
        self.fit_observed(x, y, config, |_, _| ControlFlow::Continue(()))
    }

    /// A [`fit`](Self::fit) that calls `observe` at every point of the path and ends if it breaks: for early
    /// stopping, progress, or the error on other data.
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
        let ascent = Ascent::new(self, config)?;
        argument::not_empty("y", y.shape())?;
        let mut best = self.values();
        let mut fit = Fit {
            trace: Vec::with_capacity(config.steps.saturating_add(1).min(1 << 16)),
            best: 0,
        };
        let walked = self.walk(x, y, ascent, config.steps, &mut |process, step| {
            let at = fit.trace.len();
            fit.trace.push(step);
            if at == 0 || fit.trace[fit.best].value() < step.value() {
                (fit.best, best) = (at, process.values());
            }
            observe(process, &step)
        });
        self.set_parameters(&best)?;
        walked.map(|()| fit)
    }

    fn values(&self) -> Vec<f64> {
        self.parameters().iter().map(|p| p.value).collect()
    }

    fn walk(
        &mut self,
        x: ArrayView2<f64>,
        y: ArrayView1<f64>,
        mut ascent: Ascent,
        steps: usize,
        visit: &mut dyn FnMut(&Self, Step) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        for taken in 0.. {
            let got = self.evidence_gradient(x, y)?;
            let norm = got.coordinates.iter().map(|g| g * g).sum::<f64>();
            let step = Step {
                evidence: got.evidence,
                gradient_norm: norm.sqrt(),
            };
            if visit(self, step).is_break() || taken == steps {
                break;
            }
            ascent.step(self, &got)?;
        }
        Ok(())
    }
}

impl Step {
    fn value(&self) -> f64 {
        self.evidence.log_likelihood
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{process, scaled_rbf};
    use bochner_numerics::check::random;
    use ndarray::{Array1, Array2};

    fn data() -> (Array2<f64>, Array1<f64>) {
        let x: Array2<f64> = random((25, 1), "x");
        let y = x.column(0).mapv(|x| (2.0 * x).sin() + 3.0) + random::<f64, _>(25, "y") * 0.1;
        (x, y)
    }

    #[test]
    fn the_maximum_is_found_from_either_side() {
        let (x, y) = data();
        let config = FitConfig {
            steps: 1200,
            learning_rate: 0.03,
            ..Default::default()
        };
        let arrive = |variance, lengthscale, noise| {
            let mut process = process(scaled_rbf(variance, lengthscale), 2.0, noise);
            let fit = process.fit(x.view(), y.view(), &config).unwrap();
            assert_eq!(fit.trace.len(), 1201);
            assert!(fit.trace[fit.best].gradient_norm < 0.05);
            assert!(fit.trace[0].gradient_norm > 1.0);
            let left = process.evidence(x.view(), y.view()).unwrap();
            let best = fit.trace[fit.best].evidence.log_likelihood;
            assert_eq!(left.log_likelihood, best);
            process.coordinates()
        };
        let (a, b) = (arrive(1.0, 1.0, 0.5), arrive(3.0, 0.4, 0.01));
        for (a, b) in a.iter().zip(&b) {
            assert!((a - b).abs() < 0.05, "{a} {b}");
        }
        // The noise of the data is 0.01.
        assert!(a[1].exp() > 0.004 && a[1].exp() < 0.025);
    }

    #[test]
    fn the_first_step_is_the_learning_rate_uphill() {
        let (x, y) = data();
        let mut process = process(scaled_rbf(1.0, 1.0), 2.0, 0.5);
        let before = process.coordinates();
        let gradient = process.evidence_gradient(x.view(), y.view()).unwrap();
        let config = FitConfig {
            steps: 1,
            ..Default::default()
        };
        process.fit(x.view(), y.view(), &config).unwrap();
        let pairs = process.coordinates().into_iter().zip(before);
        for ((after, before), g) in pairs.zip(gradient.coordinates) {
            assert!((after - before - 0.01 * g.signum()).abs() < 1e-5);
        }
    }

    #[test]
    fn the_observer_sees_every_point_and_can_end_it() {
        let (x, y) = data();
        let mut process = process(scaled_rbf(1.0, 1.0), 2.0, 0.5);
        let mut seen = Vec::new();
        let fit = process.fit_observed(x.view(), y.view(), &FitConfig::default(), |now, step| {
            let evidence = now.evidence(x.view(), y.view()).unwrap();
            assert_eq!(evidence, step.evidence);
            seen.push(*step);
            match seen.len() {
                4 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
        let fit = fit.unwrap();
        assert_eq!(fit.trace, seen);
        assert_eq!(fit.best, 3);
    }

    #[test]
    fn the_best_point_is_kept_where_the_path_overshoots_or_fails() {
        let (x, y) = data();
        let mut process = process(scaled_rbf(1.0, 0.8), 3.0, 0.01);
        let start = process.parameters();
        // A step of 900 takes an exponential to zero or infinity.
        let config = FitConfig {
            steps: 3,
            learning_rate: 900.0,
            ..Default::default()
        };
        let failed = process.fit(x.view(), y.view(), &config).unwrap_err();
        let said = failed.to_string();
        assert!(matches!(failed, Error::Coordinate { .. }), "{said}");
        assert!(said.contains("lower the learning rate"), "{said}");
        assert_eq!(process.parameters(), start);
        let config = FitConfig {
            steps: 1,
            learning_rate: 4.0,
            ..config
        };
        let fit = process.fit(x.view(), y.view(), &config).unwrap();
        assert_eq!(fit.best, 0);
        assert_eq!(process.parameters(), start);
    }

    #[test]
    fn settings_and_data_that_cannot_stand_are_named() {
        let (x, y) = data();
        let mut process = process(scaled_rbf(1.0, 1.0), 2.0, 0.5);
        let none = process.fit(
            Array2::zeros((0, 1)).view(),
            Array1::zeros(0).view(),
            &FitConfig::default(),
        );
        let said = none.unwrap_err().to_string();
        assert!(said.starts_with("`y` has shape [0]"), "{said}");
        let mut refused = |config, name| {
            let said = process.fit(x.view(), y.view(), &config).unwrap_err();
            assert!(said.to_string().starts_with(&format!("`{name}` is")));
        };
        let default = FitConfig::default;
        let learning_rate = 0.0;
        refused(
            FitConfig {
                learning_rate,
                ..default()
            },
            "learning_rate",
        );
        let betas = (0.9, 1.0);
        refused(FitConfig { betas, ..default() }, "betas.1");
    }
}
