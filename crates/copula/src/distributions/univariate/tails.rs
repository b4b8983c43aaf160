//! The logarithms of distribution and survival functions.

use super::Univariate;
use super::density::ln_hypot_one;
use crate::distributions::marginal::{LogTails, Marginal};
use crate::distributions::special::{Shares, ln_1m_exp, log_incomplete_beta, log_incomplete_gamma};
use std::f64::consts::LN_2;

pub(super) fn log_tails(univariate: &Univariate, z: f64) -> LogTails {
    match *univariate {
        Univariate::Normal { mean, std_dev } => LogTails::of_score((z - mean) / std_dev),
        Univariate::LogNormal { location, scale } => {
            above(0.0, z, || LogTails::of_score((z.ln() - location) / scale))
        }
        Univariate::Gamma { shape, rate } => above(0.0, z, || {
            log_incomplete_gamma(shape, rate * z, rate.ln() + z.ln())
        }),
        Univariate::Exponential { rate } => above(0.0, z, || of_survival(-rate * z)),
        Univariate::Beta { shape_a, shape_b } => within(0.0, 1.0, z, || {
            log_incomplete_beta(shape_a, shape_b, Shares::of(z))
        }),
        Univariate::StudentsT {
            location,
            scale,
            freedom,
        } => students_t((z - location) / scale, freedom),
        Univariate::Uniform { min, max } => within(min, max, z, || LogTails {
            lower: ((z - min) / (max - min)).ln(),
            upper: ((max - z) / (max - min)).ln(),
        }),
        Univariate::Weibull { shape, scale } => {
            above(0.0, z, || of_ln_hazard(shape * (z.ln() - scale.ln())))
        }
        Univariate::Gumbel { location, scale } => of_ln_hazard((location - z) / scale).mirrored(),
        Univariate::Laplace { location, scale } => {
            let tails = of_survival(-(z - location).abs() / scale - LN_2);
            if z < location {
                tails.mirrored()
            } else {
                tails
            }
        }
        Univariate::Pareto { scale, shape } => {
            above(scale, z, || of_survival(-shape * (z.ln() - scale.ln())))
        }
        Univariate::InverseGamma { shape, rate } => above(0.0, z, || {
            log_incomplete_gamma(shape, rate / z, rate.ln() - z.ln()).mirrored()
        }),
        Univariate::Chi { freedom } => above(0.0, z, || {
            log_incomplete_gamma(0.5 * freedom, 0.5 * z * z, 2.0 * z.ln() - LN_2)
        }),
        Univariate::FisherSnedecor {
            freedom_1,
            freedom_2,
        } => above(0.0, z, || {
            let ln_ratio = freedom_1.ln() - freedom_2.ln() + z.ln();
            log_incomplete_beta(0.5 * freedom_1, 0.5 * freedom_2, Shares::of_ratio(ln_ratio))
        }),
        Univariate::Triangular { min, max, mode } => within(min, max, z, || {
            // The probability between an end and `z` on the same side of the mode.
            let part = |z: f64, mode: f64| 2.0 * z.ln() - (max - min).ln() - mode.ln();
            if z < mode {
                of_survival(part(z - min, mode - min)).mirrored()
            } else {
                of_survival(part(max - z, max - mode))
            }
        }),
        Univariate::Empirical(ref sample) => sample.log_tails(z),
        Univariate::KernelDensity(ref sample) => sample.log_tails(z),
    }
}

/// The tails where there is a lower end of the support.
fn above(low: f64, z: f64, tails: impl FnOnce() -> LogTails) -> LogTails {
    within(low, f64::INFINITY, z, tails)
}

/// The tails where the support is an interval.
pub(super) fn within(low: f64, high: f64, z: f64, tails: impl FnOnce() -> LogTails) -> LogTails {
    if z <= low {
        LogTails::LOWEST
    } else if z >= high {
        LogTails::HIGHEST
    } else {
        tails()
    }
}

fn of_survival(upper: f64) -> LogTails {
    LogTails {
        lower: ln_1m_exp(upper),
        upper,
    }
}

/// The tails from the logarithm of the cumulative hazard, which is minus the logarithm of the survival function.
fn of_ln_hazard(ln_hazard: f64) -> LogTails {
    let upper = -ln_hazard.exp();
    LogTails {
        lower: if ln_hazard < -37.0 {
            ln_hazard
        } else {
            ln_1m_exp(upper)
        },
        upper,
    }
}

/// The tails of the standard t distribution.
pub(super) fn students_t(t: f64, freedom: f64) -> LogTails {
    let s = t.abs() / freedom.sqrt();
    let inverse = 1.0 / s;
    let shares = Shares {
        x: 1.0 / (1.0 + s * s),
        y: 1.0 / (1.0 + inverse * inverse),
        ln_x: -2.0 * ln_hypot_one(s),
        ln_y: -2.0 * ln_hypot_one(inverse),
    };
    let beyond = log_incomplete_beta(0.5 * freedom, 0.5, shares).lower - LN_2;
    let tails = of_survival(beyond);
    if t < 0.0 { tails.mirrored() } else { tails }
}
