//! The standard normal distribution, with full relative precision in both tails.

use std::f64::consts::{FRAC_1_SQRT_2, LN_2, TAU};

/// The standard normal distribution function.
///
/// $$\Phi(x) = \tfrac12 \operatorname{erfc}(-x / \sqrt 2)$$
///
/// # Numerics
/// The relative error grows with the conditioning, as $x^2$ ulps in the lower tail; zero below
/// -38.5. For the upper tail take `normal_cdf(-x)`.
pub fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// The logarithm of [`normal_cdf`], finite wherever `x` and its square are.
///
/// # Numerics
/// Relative error of a few ulps: below -5 from Laplace's continued fraction for Mills' ratio,
/// above from the error function.
pub fn ln_normal_cdf(x: f64) -> f64 {
    if x < -5.0 {
        ln_normal_density(x) + mills_ratio(-x).ln()
    } else if x < 0.0 {
        libm::erfc(-x * FRAC_1_SQRT_2).ln() - LN_2
    } else {
        (-normal_cdf(-x)).ln_1p()
    }
}

/// The standard normal quantile function, the inverse of [`normal_cdf`].
///
/// # Numerics
/// Minus infinity at 0, infinity at 1, NaN outside of `[0, 1]`. Otherwise finite, with a relative
/// error below 1e-14: Newton's method on $\Phi - \tfrac12$ in the middle, so that zeros are exact,
/// and on $\log \Phi$, which is concave, in the tails down to the smallest positive number. Above
/// one half `1 - u` is exact, but `u` itself has no digits left near 1; take
/// `-normal_quantile(q)` where the survival probability `q` is known.
///
/// # Example
///
/// ```
/// use bochner_copula::normal_quantile;
///
/// assert!((normal_quantile(0.975) - 1.959963984540054).abs() < 1e-14);
/// assert_eq!(normal_quantile(0.5), 0.0);
/// ```
pub fn normal_quantile(u: f64) -> f64 {
    if u.is_nan() || !(0.0..=1.0).contains(&u) {
        f64::NAN
    } else if (0.25..=0.75).contains(&u) {
        central_quantile(u - 0.5)
    } else if u < 0.5 {
        lower_quantile(u)
    } else {
        -lower_quantile(1.0 - u)
    }
}

/// The quantile of a probability that may have been rounded to 0 or 1, finite: at most 38.5 in
/// absolute value.
pub(crate) fn clamped_quantile(u: f64) -> f64 {
    normal_quantile(inside(u))
}

/// The nearest number in the open unit interval.
pub(crate) fn inside(u: f64) -> f64 {
    // The smallest positive number and the largest below one.
    u.clamp(f64::from_bits(1), 1.0 - f64::EPSILON / 2.0)
}

/// The logarithm of the standard normal density.
pub(crate) fn ln_normal_density(x: f64) -> f64 {
    -0.5 * (x * x + TAU.ln())
}

/// `x` with `Phi(x) - 1/2 = offset`, for offsets of at most a quarter.
fn central_quantile(offset: f64) -> f64 {
    let mut x = offset * TAU.sqrt();
    // Quadratic from an error below 0.05; the fifth step repeats the fourth.
    for _ in 0..5 {
        let residual = 0.5 * libm::erf(x * FRAC_1_SQRT_2) - offset;
        x -= residual / ln_normal_density(x).exp();
    }
    x
}

/// `x` with `Phi(x) = u`, for `u` below a quarter.
fn lower_quantile(u: f64) -> f64 {
    if u == 0.0 {
        return f64::NEG_INFINITY;
    }
    let target = u.ln();
    let t = (-2.0 * target).sqrt();
    let mut x = (t * TAU.sqrt()).ln() / t - t;
    for _ in 0..8 {
        let value = ln_normal_cdf(x);
        let step = (value - target) * (value - ln_normal_density(x)).exp();
        x -= step;
        if step.abs() < 1e-9 * x.abs() {
            // Newton's error squares: what is left is far below rounding.
            break;
        }
    }
    x
}

/// `(1 - Phi(x)) / phi(x)` for `x >= 5`.
fn mills_ratio(x: f64) -> f64 {
    // At x = 5 forty terms leave a relative error of about exp(-2 x sqrt(80)) = 1e-39.
    let tail = (1..=40).rev().fold(x, |tail, k| x + f64::from(k) / tail);
    1.0 / tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution_function_takes_quantiles_back() {
        let mut u = 1e-300;
        while u < 0.5 {
            let x = normal_quantile(u);
            assert!(
                (ln_normal_cdf(x) - u.ln()).abs() < 2e-15 * u.ln().abs(),
                "{u:e}"
            );
            u *= 7.3;
        }
    }

    #[test]
    fn quantiles_are_odd_around_one_half() {
        for u in [0.5, 0.375, 0.25, 0.125, 2f64.powi(-20), 2f64.powi(-52)] {
            assert_eq!(normal_quantile(u), -normal_quantile(1.0 - u));
        }
        assert_eq!(normal_quantile(0.5), 0.0);
    }

    #[test]
    fn the_logarithm_is_continuous_where_its_formula_changes() {
        for x in [-5.0, 0.0_f64] {
            let (below, above) = (ln_normal_cdf(x.next_down()), ln_normal_cdf(x));
            assert!((below - above).abs() < 4e-15 * above.abs());
        }
    }

    #[test]
    fn the_ends_are_infinite_unless_clamped() {
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
        assert!(normal_quantile(-1e-9).is_nan() && normal_quantile(f64::NAN).is_nan());
        assert!((clamped_quantile(0.0) + 38.467).abs() < 1e-2);
        assert!((clamped_quantile(1.0) - 8.209).abs() < 1e-2);
    }
}
