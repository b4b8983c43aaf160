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

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    /// mpmath 1.4 at 30 digits, scaled to its largest value: the integral over `s` to `h` of `npdf(s) ncdf((k - r s) / sqrt(1 - r^2))`.
    #[test]
    fn probabilities_have_the_digits_of_mpmath() {
        for (h, k, r, want) in REFERENCE {
            let got = bivariate_cdf(h, k, r);
            assert!(
                (got / want - 1.0).abs() < 1e-12,
                "{h} {k} {r}: {got:e} {want:e}"
            );
        }
    }

    const REFERENCE: [(f64, f64, f64, f64); 11] = [
        (-1.0, 0.5, 0.3, 0.133_256_135_449_951_1),
        (2.0, -0.7, -0.8, 0.219_927_728_892_983_4),
        (-5.0, -6.0, 0.5, 1.343_318_739_767_26e-11),
        (-20.0, -21.0, 0.9, 2.597_098_291_500_151e-100),
        (-5.0, -4.0, -0.6, 1.346_698_102_311_770_4e-25),
        (1.0, 1.5, -0.95, 0.774_537_544_799_685),
        (-0.5, 0.5001, -0.999, 0.006_299_136_493_064_151),
        (3.0, 3.0, 0.99, 0.998_401_723_935_360_4),
        (-8.0, -8.5, 0.9999, 9.479_534_822_203_318e-18),
        (-30.0, 1.0, 0.7, 4.906_713_927_148_187e-198),
        (0.3, -2.0, 0.05, 0.015_070_535_197_217_053),
    ];

    #[test]
    fn orthants_are_known() {
        for r in [
            -1.0 + 1e-12,
            -0.99,
            -0.5,
            0.0,
            0.3,
            0.9,
            0.999_999,
            1.0 - 1e-15,
        ] {
            let want = 0.25 + f64::asin(r) / (2.0 * PI);
            assert!((bivariate_cdf(0.0, 0.0, r) - want).abs() < 1e-15, "{r}");
        }
    }

    #[test]
    fn independence_gives_the_product() {
        for h in [-20.0, -3.0, 0.0, 0.7, 5.0, 20.0] {
            for k in [-25.0, -1.0, 0.0, 2.0, 9.0] {
                let want = normal::cdf(h) * normal::cdf(k);
                let got = bivariate_cdf(h, k, 0.0);
                assert!(
                    (got / want - 1.0).abs() < 1e-12,
                    "{h} {k}: {got:e} {want:e}"
                );
            }
        }
    }

    #[test]
    fn infinite_bounds_leave_the_other_or_nothing() {
        assert_eq!(bivariate_cdf(f64::INFINITY, -1.0, 0.4), normal::cdf(-1.0));
        assert_eq!(bivariate_cdf(1.0, f64::NEG_INFINITY, 0.4), 0.0);
    }
}
