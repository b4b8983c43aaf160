//! The bivariate normal distribution function.

use bochner_numerics::normal;
use std::f64::consts::{FRAC_PI_2, TAU};

/// The probability that both of two standard normal numbers of correlation `r` are below their bounds.
///
/// $$\Phi_2(h, k; r) = \max\big(0, \Phi(h) - \Phi(-k)\big) + \frac1{2\pi} \int_{-\pi/2}^{\arcsin r}
///   \exp\Big(-\frac{h^2 + k^2 - 2 h k \sin\theta}{2 \cos^2\theta}\Big) \\, d\theta$$
///
/// # Numerics
/// Both terms are positive, so that small probabilities keep their digits. The integral is split at the peak of its
/// integrand and taken by the double exponential rule, which is accurate although the integrand is singular at the
/// lower end.
///
/// # Reference
/// Drezner and Wesolowsky, *On the computation of the bivariate normal integral*, Journal of Statistical Computation
/// and Simulation 1990; Genz, *Numerical computation of rectangular bivariate and trivariate normal and t
/// probabilities*, Statistics and Computing 2004.
pub(crate) fn bivariate_cdf(h: f64, k: f64, r: f64) -> f64 {
    let (low, high) = (h.min(k), h.max(k));
    if low == f64::NEG_INFINITY {
        return 0.0;
    }
    if high == f64::INFINITY {
        return normal::cdf(low);
    }
    // At the correlation -1 one number is the other's negative.
    let opposed = if low + high <= 0.0 {
        0.0
    } else if low > 0.0 {
        1.0 - normal::cdf(-low) - normal::cdf(-high)
    } else {
        normal::cdf(low) - normal::cdf(-high)
    };
    // Angles are counted from -pi/2.
    let end = FRAC_PI_2 + r.asin();
    let peak = FRAC_PI_2 + peak(low, high).asin();
    let density = |angle: f64| joint_density(h, k, angle);
    let integral = if peak < end {
        integral(0.0, peak, density) + integral(peak, end, density)
    } else {
        integral(0.0, end, density)
    };
    (opposed + integral / TAU).min(normal::cdf(low))
}

/// The sine at which the integrand is largest.
fn peak(low: f64, high: f64) -> f64 {
    let (small, large) = if low.abs() < high.abs() {
        (low, high)
    } else {
        (high, low)
    };
    if large == 0.0 { 0.0 } else { small / large }
}

/// `2 pi cos` times the density at the bounds, where the correlation is the sine of the angle less a quarter turn.
fn joint_density(h: f64, k: f64, angle: f64) -> f64 {
    // 1 + r and 1 - r, each without cancellation.
    let plus = 2.0 * (0.5 * angle).sin().powi(2);
    let minus = 2.0 * (0.5 * angle).cos().powi(2);
    // (h^2 + k^2 - 2 h k r) / (1 - r^2) as a sum of positive terms.
    let square = if h * k >= 0.0 {
        (h - k).powi(2) / (plus * minus) + 2.0 * h * k / plus
    } else {
        (h + k).powi(2) / (plus * minus) - 2.0 * h * k / minus
    };
    (-0.5 * square).exp()
}

/// The double exponential rule on an interval.
fn integral(from: f64, to: f64, f: impl Fn(f64) -> f64) -> f64 {
    const STEP: f64 = 1.0 / 32.0;
    // Beyond, the weights are below rounding of the largest even where the integrand falls towards an end.
    const NODES: i32 = 128;
    let width = to - from;
    let term = |node: i32| {
        let t = STEP * f64::from(node);
        let stretched = FRAC_PI_2 * t.sinh();
        // The share of the width from the nearer end, and the weight.
        let share = 1.0 / (1.0 + (2.0 * stretched.abs()).exp());
        let weight = FRAC_PI_2 * t.cosh() / stretched.cosh().powi(2);
        let at = if node < 0 {
            from + width * share
        } else {
            to - width * share
        };
        if at > 0.0 && weight > 0.0 {
            weight * f(at)
        } else {
            0.0
        }
    };
    0.5 * width * STEP * (-NODES..=NODES).map(term).sum::<f64>()
}
