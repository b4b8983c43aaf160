//! The logarithms of densities.

use super::Univariate;
use crate::distributions::marginal::Marginal;
use crate::distributions::special::{Shares, ln_beta_term, ln_gamma, ln_gamma_term, neg_ln_beta};
use bochner_numerics::normal::ln_density;
use std::f64::consts::LN_2;

pub(super) fn log_density(univariate: &Univariate, z: f64) -> f64 {
    match *univariate {
        Univariate::Normal { mean, std_dev } => ln_density((z - mean) / std_dev) - std_dev.ln(),
        Univariate::LogNormal { location, scale } => on(z > 0.0, || {
            let ln_z = z.ln();
            ln_density((ln_z - location) / scale) - scale.ln() - ln_z
        }),
        Univariate::Gamma { shape, rate } => on(z >= 0.0, || gamma(shape, rate, z)),
        Univariate::Exponential { rate } => on(z >= 0.0, || rate.ln() - rate * z),
        Univariate::Beta { shape_a, shape_b } => {
            on((0.0..=1.0).contains(&z), || beta(shape_a, shape_b, z))
        }
        Univariate::StudentsT {
            location,
            scale,
            freedom,
        } => {
            let s = (z - location).abs() / scale / freedom.sqrt();
            let constant = neg_ln_beta(0.5 * freedom, 0.5) - 0.5 * freedom.ln() - scale.ln();
            constant - (freedom + 1.0) * ln_hypot_one(s)
        }
        Univariate::Uniform { min, max } => on((min..=max).contains(&z), || -(max - min).ln()),
        Univariate::Weibull { shape, scale } => on(z >= 0.0, || {
            let ln_t = z.ln() - scale.ln();
            shape.ln() - scale.ln() + times(shape - 1.0, ln_t) - (shape * ln_t).exp()
        }),
        Univariate::Gumbel { location, scale } => {
            let e = (location - z) / scale;
            e - e.exp() - scale.ln()
        }
        Univariate::Laplace { location, scale } => {
            -(z - location).abs() / scale - scale.ln() - LN_2
        }
        Univariate::Pareto { scale, shape } => on(z >= scale, || {
            shape.ln() - z.ln() - shape * (z.ln() - scale.ln())
        }),
        Univariate::InverseGamma { shape, rate } => on(z > 0.0, || {
            let ln_x = rate.ln() - z.ln();
            shape * ln_x - rate / z - ln_gamma(shape) - z.ln()
        }),
        Univariate::Chi { freedom } => on(z >= 0.0, || {
            let constant = (0.5 * freedom - 1.0) * LN_2 + ln_gamma(0.5 * freedom);
            times(freedom - 1.0, z.ln()) - 0.5 * z * z - constant
        }),
        Univariate::FisherSnedecor {
            freedom_1,
            freedom_2,
        } => on(z >= 0.0, || fisher(0.5 * freedom_1, 0.5 * freedom_2, z)),
        Univariate::Triangular { min, max, mode } => on((min..=max).contains(&z), || {
            let slope = if z < mode || mode == max {
                (z - min) / (mode - min)
            } else {
                (max - z) / (max - mode)
            };
            slope.ln() + LN_2 - (max - min).ln()
        }),
        Univariate::Empirical(ref sample) => sample.log_density(z),
        Univariate::KernelDensity(ref sample) => sample.log_density(z),
    }
}

/// The logarithm of a density on its support.
fn on(support: bool, value: impl FnOnce() -> f64) -> f64 {
    if support { value() } else { f64::NEG_INFINITY }
}

/// `k ln x`, 0 if `k` is.
fn times(k: f64, ln_x: f64) -> f64 {
    if k == 0.0 { 0.0 } else { k * ln_x }
}

/// `ln sqrt(1 + s^2)` without overflow.
pub(super) fn ln_hypot_one(s: f64) -> f64 {
    if s < 1e8 {
        0.5 * (s * s).ln_1p()
    } else {
        s.ln()
    }
}

fn gamma(shape: f64, rate: f64, z: f64) -> f64 {
    let (x, ln_x) = (rate * z, rate.ln() + z.ln());
    if shape > 10.0 && z > 0.0 {
        ln_gamma_term(shape, x, ln_x) + shape.ln() - z.ln()
    } else {
        times(shape - 1.0, ln_x) - x - ln_gamma(shape) + rate.ln()
    }
}

fn beta(a: f64, b: f64, z: f64) -> f64 {
    let shares = Shares::of(z);
    if z > 0.0 && z < 1.0 {
        ln_beta_term(a, b, shares) - shares.ln_x - shares.ln_y
    } else {
        times(a - 1.0, shares.ln_x) + times(b - 1.0, shares.ln_y) + neg_ln_beta(a, b)
    }
}

/// The F distribution with half the degrees of freedom `a` and `b`.
fn fisher(a: f64, b: f64, z: f64) -> f64 {
    let ln_ratio = a.ln() - b.ln() + z.ln();
    if z > 0.0 {
        ln_beta_term(a, b, Shares::of_ratio(ln_ratio)) - z.ln()
    } else {
        times(a - 1.0, f64::NEG_INFINITY) + neg_ln_beta(a, b) + a.ln() - b.ln()
    }
}
