//! Quantiles at normal scores.

use super::Univariate;
use crate::distributions::marginal::{LogTails, Marginal, Start};
use crate::distributions::special::{digamma, ln_gamma_1p, neg_ln_beta, trigamma};
use bochner_numerics::normal;
use std::f64::consts::LN_2;

pub(super) fn at_score(univariate: &Univariate, x: f64) -> f64 {
    let (low, high) = univariate.support();
    unbounded(univariate, x).clamp(low.max(f64::MIN), high.min(f64::MAX))
}

/// The quantile, infinite where it overflows.
fn unbounded(univariate: &Univariate, x: f64) -> f64 {
    let LogTails { lower, upper } = LogTails::of_score(x);
    match *univariate {
        Univariate::Normal { mean, std_dev } => mean + std_dev * x,
        Univariate::LogNormal { location, scale } => (location + scale * x).exp(),
        Univariate::Gamma { shape, rate } => gamma(shape, x) / rate,
        Univariate::Exponential { rate } => -upper / rate,
        Univariate::Beta { shape_a, shape_b } => {
            if x <= 0.0 {
                beta(shape_a, shape_b, x)
            } else {
                1.0 - beta(shape_b, shape_a, -x)
            }
        }
        Univariate::StudentsT {
            location,
            scale,
            freedom,
        } => location + scale * students_t(freedom, x.abs()).copysign(x),
        Univariate::Uniform { min, max } => {
            if x <= 0.0 {
                min + (max - min) * normal::cdf(x)
            } else {
                max - (max - min) * normal::cdf(-x)
            }
        }
        Univariate::Weibull { shape, scale } => scale * (ln_hazard(lower, upper) / shape).exp(),
        Univariate::Gumbel { location, scale } => location - scale * ln_hazard(upper, lower),
        Univariate::Laplace { location, scale } => {
            if x <= 0.0 {
                location + scale * (lower + LN_2)
            } else {
                location - scale * (upper + LN_2)
            }
        }
        Univariate::Pareto { scale, shape } => scale * (-upper / shape).exp(),
        Univariate::InverseGamma { shape, rate } => rate / gamma(shape, -x),
        Univariate::Chi { freedom } => (2.0 * gamma(0.5 * freedom, x)).sqrt(),
        Univariate::FisherSnedecor {
            freedom_1,
            freedom_2,
        } => {
            let (a, b) = (0.5 * freedom_1, 0.5 * freedom_2);
            let ratio = if x <= 0.0 {
                let share = beta(a, b, x);
                share / (1.0 - share)
            } else {
                let share = beta(b, a, -x);
                (1.0 - share) / share
            };
            b / a * ratio
        }
        Univariate::Triangular { min, max, mode } => {
            let width = max - min;
            if lower < ((mode - min) / width).ln() {
                min + (width * (mode - min)).sqrt() * (0.5 * lower).exp()
            } else {
                max - (width * (max - mode)).sqrt() * (0.5 * upper).exp()
            }
        }
        Univariate::Empirical(ref sample) => sample.at_score(x),
        Univariate::KernelDensity(ref sample) => sample.at_score(x),
    }
}

/// The logarithm of minus the logarithm of a survival function, from the logarithms of both tails.
fn ln_hazard(lower: f64, upper: f64) -> f64 {
    if lower < -37.0 { lower } else { (-upper).ln() }
}

/// The quantile of a Gamma distribution of rate 1.
fn gamma(shape: f64, x: f64) -> f64 {
    // Wilson and Hilferty's cube; its place is taken near zero by the leading term of the series.
    let root = 1.0 - 1.0 / (9.0 * shape) + x / (3.0 * shape.sqrt());
    let series = (normal::ln_cdf(x) + ln_gamma_1p(shape)) / shape;
    let guess = if root > 0.5 && shape > 0.3 {
        shape * root.powi(3)
    } else if series > 0.0 {
        shape - normal::ln_cdf(-x)
    } else {
        series.exp()
    };
    let rate = 1.0;
    from_zero(guess).solve(&Univariate::Gamma { shape, rate }, x)
}

/// The quantile of a Beta distribution, for a score of at most zero.
fn beta(shape_a: f64, shape_b: f64, x: f64) -> f64 {
    // The logit has this mean and variance, and is less skewed than the number itself.
    let mean = digamma(shape_a) - digamma(shape_b);
    let deviation = (trigamma(shape_a) + trigamma(shape_b)).sqrt();
    let series = (normal::ln_cdf(x) + shape_a.ln() - neg_ln_beta(shape_a, shape_b)) / shape_a;
    let ln_odds = (mean + x * deviation).min(series.max(mean - 9.0 * deviation));
    let guess = 1.0 / (1.0 + (-ln_odds).exp());
    from_zero(guess).solve(&Univariate::Beta { shape_a, shape_b }, x)
}

/// The quantile of the standard t distribution, for a score of at least zero.
pub(super) fn students_t(freedom: f64, x: f64) -> f64 {
    if x == 0.0 {
        return 0.0;
    }
    // Wallace's normal approximation, and the leading term of the tail where it is the larger.
    let scaled = x * (8.0 * freedom + 3.0) / (8.0 * freedom + 1.0);
    let centre = (freedom * (scaled * scaled / freedom).min(1400.0).exp_m1()).sqrt();
    let constant = neg_ln_beta(0.5 * freedom, 0.5) - freedom.ln() - normal::ln_cdf(-x);
    let tail = 0.5 * freedom.ln() + constant / freedom;
    let guess = if centre > 1e3 * freedom.sqrt() {
        tail.exp().min(f64::MAX)
    } else {
        centre
    };
    let (location, scale) = (0.0, 1.0);
    from_zero(guess).solve(
        &Univariate::StudentsT {
            location,
            scale,
            freedom,
        },
        x,
    )
}

/// A guess above zero, from which steps are taken in the logarithm.
fn from_zero(guess: f64) -> Start {
    Start {
        guess,
        origin: Some(0.0),
    }
}
