//! The regularised incomplete gamma functions, as logarithms.

use super::{STIRLING, deviance, ln_1m_exp, ln_gamma_1p, stirling_error};
use crate::distributions::marginal::LogTails;
use bochner_numerics::normal;
use std::f64::consts::TAU;

/// The shape from which on Temme's expansion replaces series of `sqrt(a)` terms.
const UNIFORM: f64 = 1e5;

/// The logarithm of `x^a e^-x / Gamma(1 + a)`.
pub(crate) fn ln_gamma_term(a: f64, x: f64, ln_x: f64) -> f64 {
    if a < STIRLING {
        a * ln_x - x - ln_gamma_1p(a)
    } else {
        -deviance(a, x, ln_x) - stirling_error(a) - 0.5 * (TAU * a).ln()
    }
}

/// The logarithms of the incomplete gamma functions *P* and *Q*, the tails of a Gamma distribution of shape `a` at `x`.
///
/// The logarithm of `x` is an argument of its own because `x` may have underflowed.
///
/// # Numerics
/// Each is accurate where its function is small, to about 1e-14 times the logarithm. *P* is summed as a power series
/// of positive terms; where *Q* is small it is a continued fraction. For shapes of 1e5 and more near
/// the mean, Temme's expansion is taken.
///
/// # Reference
/// Gil, Segura, Temme, *Efficient and accurate algorithms for the computation and inversion of the incomplete gamma
/// function ratios*, SIAM Journal on Scientific Computing 2012.
pub(crate) fn log_incomplete_gamma(a: f64, x: f64, ln_x: f64) -> LogTails {
    if ln_x == f64::NEG_INFINITY {
        return LogTails::LOWEST;
    }
    if x == f64::INFINITY {
        return LogTails::HIGHEST;
    }
    if a >= UNIFORM && (x - a).abs() < 0.2 * a {
        return uniform(a, x, ln_x);
    }
    let term = ln_gamma_term(a, x, ln_x);
    // Up to two standard deviations above the mean Q is not small, and the series is the faster of the two.
    let beyond = if a < 0.5 { 0.0 } else { 2.0 * a.sqrt() };
    if x < a + 1.0 + beyond {
        let lower = (term + series(a, x).ln()).min(0.0);
        let upper = ln_1m_exp(lower);
        LogTails { lower, upper }
    } else {
        let upper = (term + a.ln() + fraction(a, x).ln()).min(0.0);
        let lower = ln_1m_exp(upper);
        LogTails { lower, upper }
    }
}

/// `1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + ..`.
fn series(a: f64, x: f64) -> f64 {
    let (mut sum, mut term, mut n) = (1.0, 1.0, a);
    loop {
        n += 1.0;
        term *= x / n;
        sum += term;
        if term <= 0.5 * f64::EPSILON * sum || sum.is_nan() {
            return sum;
        }
    }
}

/// Legendre's continued fraction, by Lentz's method.
fn fraction(a: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / b;
    let mut h = d;
    for i in 1..100_000 {
        let i = f64::from(i);
        let numerator = -i * (i - a);
        b += 2.0;
        d = 1.0 / (numerator * d + b);
        c = b + numerator / c;
        let factor = d * c;
        h *= factor;
        if (factor - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    h
}

/// Temme's expansion around the normal distribution with its first two functions of *eta*.
fn uniform(a: f64, x: f64, ln_x: f64) -> LogTails {
    const C0: [f64; 10] = [
        8.296_711_340_953_087e-7,
        -1.854_062_210_715_16e-6,
        -2.185_448_510_679_99e-6,
        3.919_263_178_522_438e-5,
        -0.000_178_755_144_032_921_8,
        0.000_352_733_686_067_019_4,
        0.001_157_407_407_407_407_3,
        -0.014_814_814_814_814_815,
        0.083_333_333_333_333_33,
        -1.0 / 3.0,
    ];
    const C1: [f64; 5] = [
        2.057_613_168_724_28e-4,
        -0.000_990_226_337_448_559_6,
        0.002_645_502_645_502_645_4,
        -0.003_472_222_222_222_222,
        -0.001_851_851_851_851_852,
    ];
    let y = (2.0 * deviance(a, x, ln_x)).sqrt().copysign(x - a);
    let eta = y / a.sqrt();
    let at_eta = |c: &[f64]| c.iter().fold(0.0, |sum, c| sum * eta + c);
    let correction = (at_eta(&C0) + at_eta(&C1) / a) / a.sqrt();
    let tail = |y: f64, correction: f64| {
        let normal = normal::ln_cdf(y);
        normal + ((normal::ln_density(y) - normal).exp() * correction).ln_1p()
    };
    LogTails {
        lower: tail(y, -correction),
        upper: tail(-y, correction),
    }
}
