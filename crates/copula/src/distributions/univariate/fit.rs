//! Maximum-likelihood fits of univariate distributions.

use super::{Empirical, KernelDensity, Univariate};
use crate::Error;
use crate::distributions::special::{digamma, trigamma};
use bochner_numerics::argument;
use serde::{Deserialize, Serialize};

/// A family of univariate distributions that can be fitted to a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Family {
    /// The normal distribution.
    #[doc(alias = "gaussian")]
    Normal,
    /// The log-normal distribution, for values above 0.
    LogNormal,
    /// The Gamma distribution, for values above 0.
    Gamma,
    /// The exponential distribution, for values of at least 0.
    Exponential,
    /// The Beta distribution, for values strictly between 0 and 1.
    Beta,
    /// Student's t distribution with location and scale.
    StudentsT,
    /// The uniform distribution.
    Uniform,
    /// The distribution of the sample: [`Empirical`].
    Empirical,
    /// The smoothed distribution of the sample: [`KernelDensity`].
    #[doc(alias = "gaussian_kde")]
    KernelDensity,
}

impl Family {
    /// The families with parameters, among which a criterion can choose.
    pub const PARAMETRIC: [Self; 7] = [
        Self::Normal,
        Self::LogNormal,
        Self::Gamma,
        Self::Exponential,
        Self::Beta,
        Self::StudentsT,
        Self::Uniform,
    ];

    /// The number of parameters that a fit estimates; `None` without a fixed number.
    pub fn parameters(self) -> Option<usize> {
        match self {
            Self::Exponential => Some(1),
            Self::Normal | Self::LogNormal | Self::Gamma | Self::Beta | Self::Uniform => Some(2),
            Self::StudentsT => Some(3),
            Self::Empirical | Self::KernelDensity => None,
        }
    }

    /// The values that a sample may have, in words, and whether a value is one of them.
    fn admits(self) -> (&'static str, fn(f64) -> bool) {
        match self {
            Self::LogNormal | Self::Gamma => ("above 0", |x| x > 0.0),
            Self::Exponential => ("at least 0", |x| x >= 0.0),
            Self::Beta => ("strictly between 0 and 1", |x| x > 0.0 && x < 1.0),
            _ => ("finite", f64::is_finite),
        }
    }
}

impl Univariate {
    /// Fits a distribution of a family to a sample by maximum likelihood.
    ///
    /// # Errors
    /// [`Error::Argument`] for a value that is not finite, [`Error::TooFew`] below two values, [`Error::Constant`] if
    /// all are the same, [`Error::Family`] for a value that no distribution of the family has.
    ///
    /// # Numerics
    /// Closed forms, or Newton's method on the likelihood equations of Gamma and Beta. The degrees of freedom of
    /// Student's t are searched for between 0.1 and 1e6, with location and scale by expectation-maximisation. On a
    /// sample without heavy tails the likelihood increases up to the normal distribution, and the upper end is the fit.
    ///
    /// # Reference
    /// Minka, *Estimating a Gamma distribution*, 2002; Liu, Rubin, Wu, *Parameter expansion to accelerate EM*,
    /// Biometrika 1998.
    ///
    /// # Example
    ///
    /// ```
    /// use bochner_copula::{Family, Univariate};
    ///
    /// let waits = [0.3, 1.7, 0.2, 4.1, 0.9];
    /// let fitted = Univariate::fit(&waits, Family::Exponential)?;
    /// assert!(matches!(fitted, Univariate::Exponential { rate } if (rate - 5.0 / 7.2).abs() < 1e-12));
    /// # Ok::<(), bochner_copula::Error>(())
    /// ```
    pub fn fit(sample: &[f64], family: Family) -> Result<Self, Error> {
        check_sample(sample)?;
        let (allowed, admits) = family.admits();
        if let Some(row) = sample.iter().position(|x| !admits(*x)) {
            let got = sample[row];
            return Err(Error::Family {
                family,
                row,
                got,
                allowed,
            });
        }
        Ok(match family {
            Family::Normal => {
                let (mean, variance) = moments(sample);
                let std_dev = variance.sqrt();
                Self::Normal { mean, std_dev }
            }
            Family::LogNormal => {
                let logarithms: Vec<f64> = sample.iter().map(|x| x.ln()).collect();
                let (location, variance) = moments(&logarithms);
                let scale = variance.sqrt();
                Self::LogNormal { location, scale }
            }
            Family::Exponential => {
                let rate = 1.0 / moments(sample).0;
                Self::Exponential { rate }
            }
            Family::Gamma => gamma(sample),
            Family::Beta => beta(sample),
            Family::StudentsT => students_t(&sorted_sample(sample)?),
            Family::Uniform => Self::Uniform {
                min: sample.iter().copied().fold(f64::INFINITY, f64::min),
                max: sample.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            },
            Family::Empirical => Self::Empirical(Empirical::new(sample)?),
            Family::KernelDensity => Self::KernelDensity(KernelDensity::new(sample, None)?),
        })
    }
}

/// A sample in ascending order, of two different finite values or more.
pub(super) fn sorted_sample(sample: &[f64]) -> Result<Vec<f64>, Error> {
    check_sample(sample)?;
    let mut sorted = sample.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Ok(sorted)
}

fn check_sample(sample: &[f64]) -> Result<(), Error> {
    argument::finite("sample", &[sample.len()], sample)?;
    if sample.len() < 2 {
        return Err(Error::TooFew { got: sample.len() });
    }
    if sample.iter().all(|x| *x == sample[0]) {
        return Err(Error::Constant { column: 0 });
    }
    Ok(())
}

/// The mean and the variance, divided by the number of values.
pub(super) fn moments(sample: &[f64]) -> (f64, f64) {
    let n = sample.len() as f64;
    let mean = sample.iter().sum::<f64>() / n;
    let squares: f64 = sample.iter().map(|x| (x - mean).powi(2)).sum();
    (mean, squares / n)
}

fn gamma(sample: &[f64]) -> Univariate {
    let (mean, _) = moments(sample);
    // ln(mean) - mean(ln x), whose terms cancel where the sample is concentrated.
    let term = |x: &f64| {
        let d = (x - mean) / mean;
        d - d.ln_1p()
    };
    let s = sample.iter().map(term).sum::<f64>() / sample.len() as f64;
    let mut shape = (3.0 - s + ((s - 3.0).powi(2) + 24.0 * s).sqrt()) / (12.0 * s);
    for _ in 0..50 {
        let slope = shape - shape * shape * trigamma(shape);
        let inverse = 1.0 / shape + (shape.ln() - digamma(shape) - s) / slope;
        let previous = std::mem::replace(&mut shape, 1.0 / inverse);
        if (shape - previous).abs() <= 1e-14 * shape {
            break;
        }
    }
    let rate = shape / mean;
    Univariate::Gamma { shape, rate }
}

fn beta(sample: &[f64]) -> Univariate {
    let n = sample.len() as f64;
    let ln_x = sample.iter().map(|x| x.ln()).sum::<f64>() / n;
    let ln_y = sample.iter().map(|x| (-x).ln_1p()).sum::<f64>() / n;
    let (mean, variance) = moments(sample);
    let total = (mean * (1.0 - mean) / variance - 1.0).max(0.1);
    let (mut a, mut b) = (mean * total, (1.0 - mean) * total);
    for _ in 0..200 {
        let (common, curvature) = (digamma(a + b), trigamma(a + b));
        let (f, g) = (digamma(a) - common - ln_x, digamma(b) - common - ln_y);
        let (aa, bb) = (trigamma(a) - curvature, trigamma(b) - curvature);
        let determinant = aa * bb - curvature * curvature;
        let step_a = (bb * f + curvature * g) / determinant;
        let step_b = (aa * g + curvature * f) / determinant;
        let (old_a, old_b) = (a, b);
        a = (a - step_a).max(0.1 * a);
        b = (b - step_b).max(0.1 * b);
        if (a - old_a).abs() <= 1e-14 * a && (b - old_b).abs() <= 1e-14 * b {
            break;
        }
    }
    Univariate::Beta {
        shape_a: a,
        shape_b: b,
    }
}

/// The best degrees of freedom for the best location and scale of each.
fn students_t(sorted: &[f64]) -> Univariate {
    let quantile = |share: f64| sorted[(share * (sorted.len() - 1) as f64) as usize];
    let spread = 0.7 * (quantile(0.75) - quantile(0.25));
    let (_, variance) = moments(sorted);
    let scale = if spread > 0.0 {
        spread
    } else {
        variance.sqrt()
    };
    let start = (quantile(0.5), scale);
    let fitted = |ln_freedom: f64| {
        let freedom = ln_freedom.exp();
        let (location, scale) = location_and_scale(sorted, freedom, start);
        Univariate::StudentsT {
            location,
            scale,
            freedom,
        }
    };
    let range = (0.1_f64.ln(), 1e6_f64.ln());
    fitted(maximum(range, |ln_freedom| {
        fitted(ln_freedom).log_likelihood(sorted)
    }))
}

/// Expectation-maximisation with an expanded parameter: the weights are normalised by their sum.
fn location_and_scale(sample: &[f64], freedom: f64, start: (f64, f64)) -> (f64, f64) {
    let (mut location, mut scale) = start;
    for _ in 0..1000 {
        let (mut weights, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for x in sample {
            let d = x - location;
            let weight = (freedom + 1.0) / (freedom + (d / scale).powi(2));
            weights += weight;
            sum += weight * d;
            squares += weight * d * d;
        }
        let step = sum / weights;
        let next = (squares / weights - step * step).max(0.0).sqrt();
        let change = step.abs() + (next - scale).abs();
        location += step;
        scale = next.max(f64::MIN_POSITIVE);
        if change <= 1e-12 * scale {
            break;
        }
    }
    (location, scale)
}

/// The place of the maximum of a function with one peak, by golden sections.
pub(crate) fn maximum((mut low, mut high): (f64, f64), f: impl Fn(f64) -> f64) -> f64 {
    let golden = 0.5 * (5.0_f64.sqrt() - 1.0);
    let (mut a, mut b) = (high - golden * (high - low), low + golden * (high - low));
    let (mut at_a, mut at_b) = (f(a), f(b));
    while high - low > 1e-7 {
        if at_a < at_b {
            low = a;
            (a, at_a) = (b, at_b);
            b = low + golden * (high - low);
            at_b = f(b);
        } else {
            high = b;
            (b, at_b) = (a, at_a);
            a = high - golden * (high - low);
            at_a = f(a);
        }
    }
    0.5 * (low + high)
}
