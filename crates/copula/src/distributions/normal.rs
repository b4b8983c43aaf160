//! Normal scores of probabilities that may have been rounded.

use bochner_numerics::normal;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_clamped() {
        assert!((clamped_quantile(0.0) + 38.467).abs() < 1e-2);
        assert!((clamped_quantile(1.0) - 8.209).abs() < 1e-2);
    }
}
