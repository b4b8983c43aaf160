//! Normal scores of probabilities, which may be given by their logarithms.

use bochner_numerics::normal::{self, ln_cdf, ln_density};

/// The quantile of a probability that may have been rounded to 0 or 1, finite: at most 38.5 in
/// absolute value.
pub(crate) fn clamped_quantile(u: f64) -> f64 {
    normal::quantile(inside(u))
}

/// The nearest number in the open unit interval.
pub(crate) fn inside(u: f64) -> f64 {
    // The smallest positive number and the largest below one.
    u.clamp(f64::from_bits(1), 1.0 - f64::EPSILON / 2.0)
}

/// The quantile of a probability of at most about one half, given by its logarithm, which may be any number.
pub(crate) fn quantile_of_ln(ln_u: f64) -> f64 {
    if ln_u >= -700.0 || ln_u == f64::NEG_INFINITY {
        return normal::quantile(ln_u.exp());
    }
    // ln Phi(x) = -x^2 / 2 - ln(-x sqrt(2 pi)) - .., solved by Newton's method; its slope is almost -x.
    let mut x = -(-2.0 * ln_u - (-4.0 * std::f64::consts::PI * ln_u).ln()).sqrt();
    for _ in 0..4 {
        x += (ln_cdf(x) - ln_u) / x;
    }
    x
}

/// The logarithms of the normal distribution function and of its complement, at a normal score.
pub(crate) fn ln_tails(x: f64) -> (f64, f64) {
    (ln_cdf(x), ln_cdf(-x))
}

/// The slope of the normal score of a marginal: its density over that of the score.
pub(crate) fn slope_of_score(ln_density_of_marginal: f64, score: f64) -> f64 {
    (ln_density_of_marginal - ln_density(score)).exp()
}
