//! The standard normal distribution, one number at a time; for slices see
//! [`normal_cdf_in_place`](crate::elementary::normal_cdf_in_place) and
//! [`normal_quantile_in_place`](crate::elementary::normal_quantile_in_place).
//!
//! The functions give the same bits on every processor. They may differ from those of slices by an ulp
//! or two, since the latter use the fused multiply-add where there is one.

use crate::elementary::arithmetic::Separate;
use crate::elementary::normal::{distribution, inverse};
use std::f64::consts::TAU;

/// The density, $\varphi(x) = e^{-x^2 / 2} / \sqrt{2 \pi}$.
pub fn density(x: f64) -> f64 {
    (-0.5 * x * x).exp() / TAU.sqrt()
}

/// The logarithm of the [`density`].
pub fn ln_density(x: f64) -> f64 {
    -0.5 * (x * x + TAU.ln())
}

/// The distribution function, $\Phi(x) = \int_{-\infty}^x \varphi(s) \\, ds$.
///
/// # Numerics
/// The error is below 5 ulp, in the lower tail too; zero below -38.6. For the upper tail take `cdf(-x)`.
///
/// ```
/// use bochner_numerics::normal;
///
/// assert!((normal::cdf(-1.0) - 0.15865525393145707).abs() < 1e-16);
/// ```
pub fn cdf(x: f64) -> f64 {
    distribution::<f64, Separate>(x)
}

/// The logarithm of [`cdf`], finite wherever `x` and its square are.
///
/// # Numerics
/// The relative error is a few ulps. Below -5 the function takes Laplace's continued fraction for Mills'
/// ratio, $\Phi(x) / \varphi(x)$.
pub fn ln_cdf(x: f64) -> f64 {
    if x < -5.0 {
        ln_density(x) + mills_ratio(-x).ln()
    } else if x < 0.0 {
        cdf(x).ln()
    } else {
        (-cdf(-x)).ln_1p()
    }
}

/// The quantile function, the inverse of [`cdf`].
///
/// # Numerics
/// The error is below 4 ulp. $\Phi^{-1}(\tfrac12)$ is exactly 0, and the function is exactly odd around
/// it; minus infinity at 0, infinity at 1, NaN outside of $[0, 1]$, finite in between. Near 1 the argument
/// itself has few digits left: where $1 - u$ is known, take `-quantile(1 - u)`.
///
/// ```
/// use bochner_numerics::normal;
///
/// assert!((normal::quantile(0.975) - 1.959963984540054).abs() < 1e-15);
/// assert_eq!(normal::quantile(0.5), 0.0);
/// ```
pub fn quantile(u: f64) -> f64 {
    inverse::<f64, Separate>(u)
}

/// `(1 - Phi(x)) / phi(x)` for `x >= 5`.
fn mills_ratio(x: f64) -> f64 {
    // At x = 5 forty terms leave a relative error of about exp(-2 x sqrt(80)) = 1e-39.
    let tail = (1..=40).rev().fold(x, |tail, k| x + f64::from(k) / tail);
    1.0 / tail
}
