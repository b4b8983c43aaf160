//! Proposition 4, in the form that is true: for $\epsilon \le 4 \sqrt 2 D s$,
//! $s^2 = \mathbb{E} |w_1|^2 + \mathbb{E} |w_2|^2$, on a set of diameter D in $\mathbb{R}^d$
//!
//! $$P[\sup |f_{NS} - k| \ge \epsilon] \le 2^8 \Bigl(\frac{D s}{\epsilon}\Bigr)^2
//! \exp \frac{-R \epsilon^2}{8 (d + 1)}$$
//!
//! so $R = \Omega(d \epsilon^{-2} \log (D s / \epsilon))$ points suffice.
//!
//! The bound is loose by orders of magnitude, so that draws would not contradict smaller constants: the
//! constants 2^8, 8 (d + 1) and 4 sqrt(2) are compared with the formula, number by number. That drawn points
//! keep to the bound, and that the printed form without the condition on the error is false, is measured by
//! `cargo xtask reproduce propositions`.

use bochner_kernels::{Error, UniformBound, UniformBoundConfig};
use proptest::prelude::*;

fn setting() -> impl Strategy<Value = (UniformBoundConfig, UniformBound)> {
    let ranges = (1..=64_usize, 0.5..3.0_f64, 0.5..20.0_f64);
    ranges.prop_map(|(width, diameter, spread)| {
        let config = UniformBoundConfig {
            width,
            diameter,
            spread,
        };
        (config.clone(), config.build().unwrap())
    })
}

proptest! {
    /// The probability is the formula's, constants included.
    #[test]
    fn the_probability_is_as_stated(
        (setting, bound) in setting(),
        error in 0.01..1.0f64,
        count in 1..100_000_usize,
    ) {
        prop_assume!(error <= bound.largest_error());
        let ratio = setting.diameter * setting.spread / error;
        let exponent = count as f64 * error * error / (8.0 * (setting.width + 1) as f64);
        let want = (256.0 * ratio * ratio * (-exponent).exp()).min(1.0);
        let got = bound.probability(error, count).unwrap();
        prop_assert!((got - want).abs() <= 1e-12 * want + 1e-300, "{} {}", got, want);
        let largest = 4.0 * 2.0_f64.sqrt() * setting.diameter * setting.spread;
        prop_assert!((bound.largest_error() / largest - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_number_is_the_smallest_the_bound_allows(
        (_, bound) in setting(),
        error in 0.01..1.0f64,
        probability in 0.001..0.5f64,
    ) {
        prop_assume!(error <= bound.largest_error());
        let enough = bound.points(error, probability).unwrap();
        prop_assert!(bound.probability(error, enough).unwrap() <= probability * (1.0 + 1e-9));
        prop_assert!(bound.probability(error, enough - 1).unwrap() > probability * (1.0 - 1e-9));
        // Twice the accuracy takes four times the points, and some.
        let finer = bound.points(error / 2.0, probability).unwrap();
        prop_assert!(finer >= 4 * (enough - 1));
    }

    /// Above the largest error the printed bound is false.
    #[test]
    fn the_condition_on_the_error_is_checked(
        (_, bound) in setting(),
        beyond in 1e-9..10.0_f64,
        count in 1..10_usize,
    ) {
        let largest = bound.largest_error();
        let refused = bound.probability(largest * (1.0 + beyond), count);
        prop_assert!(matches!(refused, Err(Error::Argument(refused)) if refused.name() == "error"));
        prop_assert!(bound.probability(largest, count).is_ok());
    }
}
