//! Densities fitted to a kernel, or to samples of functions, by gradient.
//!
//! The features of spectral points give a kernel; the fit moves the points, or what they are drawn
//! from, until it is the one wanted.

mod estimator;
mod target;

pub use estimator::{DirectEstimator, Estimator, GaussianEstimator, ImplicitEstimator};
pub use target::{KernelValues, empirical_kernel};

use crate::Error;
use bochner_kernels::{SpectralPoints, kernel_matrix, kernel_matrix_vjp};
use bochner_numerics::argument;
use bochner_ops::{AdamConfig, AdamRule, Moments};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

/// Settings of the fit of a density.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    rename_all = "kebab-case",
    remote = "Self"
)]
pub struct DensityFitConfig {
    /// The steps of Adam; at least one.
    pub steps: usize,
    /// The learning rate of the first step, falling linearly to zero; positive.
    #[serde(alias = "learning_rate")]
    pub learning_rate: f64,
}

impl Default for DensityFitConfig {
    fn default() -> Self {
        Self {
            steps: 1000,
            learning_rate: 0.05,
        }
    }
}

bochner_numerics::checked_when_read!(DensityFitConfig);

impl DensityFitConfig {
    fn validate(&self) -> Result<(), Error> {
        argument::at_least_one("steps", self.steps)?;
        Ok(argument::positive("learning_rate", self.learning_rate)?)
    }
}

/// The result of a fit. The estimators keep the best parameters seen.
#[derive(Clone, Debug, PartialEq)]
pub struct DensityFit {
    /// The squared error before each step and after the last one.
    pub losses: Vec<f64>,
    /// The index of the smallest loss.
    pub best: usize,
}

/// Fits a density of points to a stationary kernel.
///
/// $$\min \frac{1}{N N'} \sum_{ij} \bigl(f_S(x_i, y_j) - k_{ij}\bigr)^2, \qquad
/// f_S(x, y) = \frac1R \sum_r \cos w_r \cdot (x - y)$$
///
/// The squared error of two stationary kernels is a squared distance of their spectral densities,
/// smoothed by the Fourier transform of the lags' density. With heavy-tailed lags the gradient moves
/// points towards mass that is far from them; with equally spaced lags the smoothing has side lobes, and
/// points stop at the local minima of these.
///
/// # Numerics
/// Adam with its usual averages (0.9, 0.999); each step takes $O(N N' R)$ time. Equal arguments
/// give equal bits.
///
/// # Reference
/// Kingma, Ba, *Adam: a method for stochastic optimization*, ICLR 2015.
///
/// # Errors
/// [`Error::Argument`] for the values, the settings or the estimator; [`Error::Kernel`] if inputs and
/// points differ in width; [`Error::Diverged`] if a step leads to an error that is not finite. Whatever
/// stops the fit, the estimators are left with the best parameters seen until then.
///
/// # Example
/// ```
/// use bochner_numerics::{Seed, standard_normal};
/// use bochner_spectral::{
///     DensityFitConfig, GaussianEstimator, KernelValues, fit_stationary,
/// };
/// use bochner_spectral::ndarray::{Array2, array};
///
/// // An RBF kernel of lengthscale 2, at lags from the origin.
/// let x = Array2::from_shape_fn((30, 1), |(i, _)| 0.2 * i as f64);
/// let values = x.mapv(|t| (-t * t / 8.0_f64).exp());
/// let y = array![[0.0]];
/// let target = KernelValues { x: x.view(), y: y.view(), values: values.view() };
///
/// let mut stream = Seed::new(1).stream("noise");
/// let eps = Array2::from_shape_simple_fn((2000, 1), || standard_normal(&mut stream));
/// let mut density = GaussianEstimator { log_std: array![0.0], eps };
/// let config = DensityFitConfig { steps: 200, ..Default::default() };
/// fit_stationary(&mut density, &target, &config)?;
/// assert!((density.log_std[0].exp() - 0.5).abs() < 0.03);
/// # Ok::<(), bochner_spectral::Error>(())
/// ```
pub fn fit_stationary(
    estimator: &mut dyn Estimator,
    target: &KernelValues,
    config: &DensityFitConfig,
) -> Result<DensityFit, Error> {
    descend(&mut [estimator], target, config)
}

/// Fits densities of pairs of points to any kernel, as [`fit_stationary`] does.
///
/// $$f_{NS}(x, y) = \frac{1}{4R} \sum_r \sum_{a, b \in \lbrace 1, 2 \rbrace}
/// \cos(w_{ar} \cdot x - w_{br} \cdot y)$$
///
/// The two densities have the same shape `[R, d]` of points; where both are implicit and given the
/// same noise, the points of a pair depend on each other.
///
/// # Errors
/// The errors of [`fit_stationary`].
pub fn fit_nonstationary(
    first: &mut dyn Estimator,
    second: &mut dyn Estimator,
    target: &KernelValues,
    config: &DensityFitConfig,
) -> Result<DensityFit, Error> {
    descend(&mut [first, second], target, config)
}

fn descend(
    estimators: &mut [&mut dyn Estimator],
    target: &KernelValues,
    config: &DensityFitConfig,
) -> Result<DensityFit, Error> {
    target.check()?;
    config.validate()?;
    let mut best = Best {
        losses: Vec::new(),
        at: 0,
        parameters: estimators.iter().map(|e| e.parameters()).collect(),
    };
    let steps = best.descend(estimators, target, config);
    assign(estimators, &best.parameters)?;
    steps?;
    Ok(DensityFit {
        losses: best.losses,
        best: best.at,
    })
}

/// The losses of a fit, and the parameters that led to the least of them.
struct Best {
    losses: Vec<f64>,
    at: usize,
    parameters: Vec<Vec<f64>>,
}

impl Best {
    fn descend(
        &mut self,
        estimators: &mut [&mut dyn Estimator],
        target: &KernelValues,
        config: &DensityFitConfig,
    ) -> Result<(), Error> {
        let mut parameters = self.parameters.clone();
        let adam = AdamConfig {
            epsilon: 1e-10,
            ..AdamConfig::default()
        };
        let moments = parameters.iter().map(|p| Moments::zeros(p.len()));
        let mut moments: Vec<_> = moments.collect();
        for step in 0..=config.steps {
            let (loss, gradients) = objective(estimators, target)?;
            if !loss.is_finite() {
                return Err(Error::Diverged { step, loss });
            }
            self.losses.push(loss);
            if loss < self.losses[self.at] {
                self.at = step;
                self.parameters.clone_from(&parameters);
            }
            let rate = config.learning_rate * (1.0 - step as f64 / config.steps as f64);
            let rule = AdamRule::new(&adam, rate, step as u64 + 1);
            for (i, gradient) in gradients.iter().enumerate() {
                rule.step(&mut parameters[i], &mut moments[i], gradient);
            }
            assign(estimators, &parameters)?;
        }
        Ok(())
    }
}

fn assign(estimators: &mut [&mut dyn Estimator], parameters: &[Vec<f64>]) -> Result<(), Error> {
    let mut pairs = estimators.iter_mut().zip(parameters);
    pairs.try_for_each(|(estimator, parameters)| estimator.set_parameters(parameters))
}

/// The mean squared error, and its gradient along each estimator's parameters.
fn objective(
    estimators: &[&mut dyn Estimator],
    target: &KernelValues,
) -> Result<(f64, Vec<Vec<f64>>), Error> {
    let points = estimators.iter().map(|e| e.points());
    let points = points.collect::<Result<Vec<_>, _>>()?;
    let spectral = spectral_points(&points);
    let off = kernel_matrix(target.x, target.y, &spectral)? - target.values;
    let count = off.len() as f64;
    let loss = off.iter().map(|o| o * o).sum::<f64>() / count;
    let cotangent = off * (2.0 / count);
    let along = kernel_matrix_vjp(target.x, target.y, &spectral, cotangent.view())?;
    let along = [Some(along.points.w1), along.points.w2]
        .into_iter()
        .flatten();
    let gradients = estimators.iter().zip(along);
    let gradients = gradients.map(|(e, along)| e.points_vjp(along.view()));
    Ok((loss, gradients.collect::<Result<_, _>>()?))
}

fn spectral_points(points: &[Array2<f64>]) -> SpectralPoints<'_, f64> {
    match points {
        [w] => SpectralPoints::Stationary { w: w.view() },
        [w1, w2] => SpectralPoints::Nonstationary {
            w1: w1.view(),
            w2: w2.view(),
        },
        _ => unreachable!("one estimator, or one for each point of a pair"),
    }
}
