//! Marginal distributions: the functions of each coordinate that a joint distribution needs.

use bochner_copula::{LogTails, Marginal};
use bochner_numerics::normal;
use proptest::prelude::*;

/// A distribution that is uniform on the first tenth of the unit interval, and on its last.
struct Gap;

impl Marginal for Gap {
    fn log_density(&self, z: f64) -> f64 {
        let inside = (0.0..=0.1).contains(&z) || (0.9..=1.0).contains(&z);
        if inside {
            5.0_f64.ln()
        } else {
            f64::NEG_INFINITY
        }
    }

    fn log_tails(&self, z: f64) -> LogTails {
        let lower = (5.0 * z).clamp(0.0, 0.5) + (5.0 * (z - 0.9)).clamp(0.0, 0.5);
        LogTails {
            lower: lower.ln(),
            upper: (1.0 - lower).ln(),
        }
    }

    fn support(&self) -> (f64, f64) {
        (0.0, 1.0)
    }
}

proptest! {
    #[test]
    fn a_density_without_mass_somewhere_is_solved(x in -5.0..5.0) {
        let z = Gap.at_score(x);
        let back = Gap.log_tails(z).lower;
        prop_assert!((back - normal::ln_cdf(x)).abs() < 1e-9, "{x} {z} {back}");
        prop_assert_eq!(z < 0.5, x < 0.0);
    }
}

/// Half of the probability is at 1.
#[test]
fn where_a_distribution_function_jumps_the_solution_is_the_jump() {
    struct Jump;
    impl Marginal for Jump {
        fn log_density(&self, z: f64) -> f64 {
            -z - std::f64::consts::LN_2
        }
        fn log_tails(&self, z: f64) -> LogTails {
            let step = if z < 1.0 { 0.0 } else { 0.5 };
            let lower: f64 = step - 0.5 * (-z).exp_m1();
            LogTails {
                lower: lower.ln(),
                upper: (1.0 - lower).ln(),
            }
        }
        fn support(&self) -> (f64, f64) {
            (0.0, f64::INFINITY)
        }
    }
    for x in [-0.4, 0.0, 0.8] {
        assert_eq!(Jump.at_score(x), 1.0);
    }
    assert!(Jump.at_score(-0.6) < 1.0 && Jump.at_score(1.1) > 1.0);
}
