//! Special functions that keep their digits in both tails, as logarithms.
//!
//! statrs has the incomplete functions too, but not their logarithms, which underflow far out, and with a
//! precision that is absolute.

mod incomplete_beta;
mod incomplete_gamma;

pub(crate) use incomplete_beta::{Shares, ln_beta_term, log_incomplete_beta};
pub(crate) use incomplete_gamma::{ln_gamma_term, log_incomplete_gamma};

use std::f64::consts::TAU;

/// The argument from which on Stirling's series is exact within rounding.
const STIRLING: f64 = 10.0;

/// The logarithm of the gamma function at `1 + a`, for `a >= 0`.
pub(crate) fn ln_gamma_1p(a: f64) -> f64 {
    let (mut b, mut product) = (a, 1.0);
    while b < STIRLING {
        b += 1.0;
        product *= b;
    }
    (b + 0.5) * b.ln() - b + 0.5 * TAU.ln() + stirling_series(b) - product.ln()
}

/// The logarithm of the gamma function, for `a > 0`.
pub(crate) fn ln_gamma(a: f64) -> f64 {
    ln_gamma_1p(a) - a.ln()
}

/// The error of Stirling's formula for the logarithm of the gamma function at `1 + a`.
pub(crate) fn stirling_error(a: f64) -> f64 {
    if a < STIRLING {
        ln_gamma_1p(a) - ((a + 0.5) * a.ln() - a + 0.5 * TAU.ln())
    } else {
        stirling_series(a)
    }
}

fn stirling_series(a: f64) -> f64 {
    const COEFFICIENTS: [f64; 7] = [
        1.0 / 156.0,
        -691.0 / 360_360.0,
        1.0 / 1188.0,
        -1.0 / 1680.0,
        1.0 / 1260.0,
        -1.0 / 360.0,
        1.0 / 12.0,
    ];
    let square = 1.0 / (a * a);
    COEFFICIENTS.iter().fold(0.0, |sum, c| sum * square + c) / a
}

/// `-ln B(a, b)`, without cancellation where one of the two is large.
pub(crate) fn neg_ln_beta(a: f64, b: f64) -> f64 {
    let (small, large) = (a.min(b), a.max(b));
    let sum = a + b;
    stirling_error(sum) - stirling_error(small) - stirling_error(large)
        + (large - 0.5) * (small / large).ln_1p()
        + small * (sum / small).ln()
        + 0.5 * small.ln()
        - 0.5 * TAU.ln()
}

/// `a ln(a / x) + x - a`, without cancellation where the two are close.
///
/// Loader's saddle-point expansion of probabilities is built on it: *Fast and accurate computation of binomial
/// probabilities*, 2000.
pub(crate) fn deviance(a: f64, x: f64, ln_x: f64) -> f64 {
    let difference = x - a;
    if difference.abs() >= 0.1 * (x + a) {
        return a * (a.ln() - ln_x) + difference;
    }
    let v = difference / (x + a);
    let square = v * v;
    let mut term = -2.0 * a * v;
    let mut sum = difference * v;
    for k in 1..100 {
        term *= square;
        let next = sum + term / f64::from(2 * k + 1);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

/// The derivative of [`ln_gamma`].
pub(crate) fn digamma(a: f64) -> f64 {
    let (mut b, mut sum) = (a, 0.0);
    while b < STIRLING {
        sum -= 1.0 / b;
        b += 1.0;
    }
    let square = 1.0 / (b * b);
    const COEFFICIENTS: [f64; 7] = [
        -1.0 / 12.0,
        691.0 / 32_760.0,
        -1.0 / 132.0,
        1.0 / 240.0,
        -1.0 / 252.0,
        1.0 / 120.0,
        -1.0 / 12.0,
    ];
    let series = COEFFICIENTS.iter().fold(0.0, |sum, c| (sum + c) * square);
    sum + b.ln() - 0.5 / b + series
}

/// The derivative of [`digamma`].
pub(crate) fn trigamma(a: f64) -> f64 {
    let (mut b, mut sum) = (a, 0.0);
    while b < STIRLING {
        sum += 1.0 / (b * b);
        b += 1.0;
    }
    let square = 1.0 / (b * b);
    const COEFFICIENTS: [f64; 7] = [
        7.0 / 6.0,
        -691.0 / 2730.0,
        5.0 / 66.0,
        -1.0 / 30.0,
        1.0 / 42.0,
        -1.0 / 30.0,
        1.0 / 6.0,
    ];
    let series = COEFFICIENTS.iter().fold(0.0, |sum, c| (sum + c) * square);
    sum + (1.0 + 0.5 / b + series) / b
}

/// `ln(1 - exp(x))` for `x <= 0`.
pub(crate) fn ln_1m_exp(x: f64) -> f64 {
    if x > -std::f64::consts::LN_2 {
        (-x.exp_m1()).ln()
    } else {
        (-x.exp()).ln_1p()
    }
}
