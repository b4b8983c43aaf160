//! The regularised incomplete beta function, as logarithms.

use super::{deviance, ln_1m_exp, stirling_error};
use crate::distributions::marginal::LogTails;
use std::f64::consts::TAU;

/// Two numbers that add up to one, with their logarithms, since either may have been rounded to 0 or 1.
#[derive(Clone, Copy)]
pub(crate) struct Shares {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) ln_x: f64,
    pub(crate) ln_y: f64,
}

impl Shares {
    /// The shares of a number between 0 and 1.
    pub(crate) fn of(x: f64) -> Self {
        Self {
            x,
            y: 1.0 - x,
            ln_x: x.ln(),
            ln_y: (-x).ln_1p(),
        }
    }

    /// `r / (1 + r)` and `1 / (1 + r)`.
    pub(crate) fn of_ratio(ln_r: f64) -> Self {
        let (r, inverse) = (ln_r.exp(), (-ln_r).exp());
        // ln(1 + r) without overflow.
        let softplus = |ln_r: f64, r: f64| if ln_r > 700.0 { ln_r } else { r.ln_1p() };
        Self {
            x: 1.0 / (1.0 + inverse),
            y: 1.0 / (1.0 + r),
            ln_x: -softplus(-ln_r, inverse),
            ln_y: -softplus(ln_r, r),
        }
    }

    fn swapped(self) -> Self {
        Self {
            x: self.y,
            y: self.x,
            ln_x: self.ln_y,
            ln_y: self.ln_x,
        }
    }
}

/// The logarithm of `x^a y^b / B(a, b)`, by Loader's expansion.
pub(crate) fn ln_beta_term(a: f64, b: f64, shares: Shares) -> f64 {
    let n = a + b;
    let part = |a: f64, x: f64, ln_x: f64| {
        0.5 * a.ln() - stirling_error(a) - deviance(a, n * x, n.ln() + ln_x)
    };
    let Shares { x, y, ln_x, ln_y } = shares;
    part(a, x, ln_x) + part(b, y, ln_y) + stirling_error(n) - 0.5 * (TAU * n).ln()
}

/// The logarithms of the tails of a Beta distribution with shapes `a` and `b` at `x`.
///
/// # Numerics
/// A continued fraction of about `sqrt(max(a, b))` terms, in the tail in which it converges; each result is accurate
/// where its function is small, to about 1e-14 times the logarithm.
///
/// # Reference
/// DiDonato and Morris, *Significant digit computation of the incomplete beta function ratios*, ACM TOMS 1992.
pub(crate) fn log_incomplete_beta(a: f64, b: f64, shares: Shares) -> LogTails {
    if shares.ln_x == f64::NEG_INFINITY {
        return LogTails::LOWEST;
    }
    if shares.ln_y == f64::NEG_INFINITY {
        return LogTails::HIGHEST;
    }
    if shares.x < (a + 1.0) / (a + b + 2.0) {
        let lower = lower_tail(a, b, shares);
        let upper = ln_1m_exp(lower);
        LogTails { lower, upper }
    } else {
        let upper = lower_tail(b, a, shares.swapped());
        let lower = ln_1m_exp(upper);
        LogTails { lower, upper }
    }
}

fn lower_tail(a: f64, b: f64, shares: Shares) -> f64 {
    (ln_beta_term(a, b, shares) - a.ln() + fraction(a, b, shares.x).ln()).min(0.0)
}

/// The continued fraction, by Lentz's method.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    let mut c = 1.0;
    let mut d = 1.0 / (1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    for m in 1..100_000 {
        let m = f64::from(m);
        let last = a + 2.0 * m;
        let even = m * (b - m) * x / ((last - 1.0) * last);
        let odd = -(a + m) * (a + b + m) * x / (last * (last + 1.0));
        let mut factor = 1.0;
        for numerator in [even, odd] {
            d = 1.0 / (1.0 + numerator * d);
            c = 1.0 + numerator / c;
            factor = c * d;
            h *= factor;
        }
        if (factor - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    h
}
