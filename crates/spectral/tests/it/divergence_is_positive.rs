//! The divergence vanishes at the prior, and nowhere else.

use bochner_spectral::{kl_mean_field, kl_mean_field_vjp};
use ndarray::{Array3, array};
use proptest::prelude::*;

fn parameters() -> impl Strategy<Value = (Array3<f64>, Array3<f64>)> {
    let values = |low, high| {
        prop::collection::vec(low..high, 2 * 3 * 2)
            .prop_map(|v| Array3::from_shape_vec((2, 3, 2), v).unwrap())
    };
    (values(-2.0, 2.0), values(-5.0, 2.0))
}

proptest! {
    #[test]
    fn the_divergence_is_not_negative(
        (mu, log_sigma) in parameters(),
        prior_std in 0.05..3.0f64,
    ) {
        let kl = kl_mean_field(mu.view(), log_sigma.view(), prior_std).unwrap();
        prop_assert!(kl.iter().all(|&kl| kl > 0.0));
    }

    #[test]
    fn the_divergence_is_convex_along_the_mean(
        (mu, log_sigma) in parameters(),
        prior_std in 0.05..3.0f64,
    ) {
        let kl = |factor: f64| {
            kl_mean_field((&mu * factor).view(), log_sigma.view(), prior_std).unwrap()
        };
        let (none, half, whole) = (kl(0.0), kl(0.5), kl(1.0));
        for b in 0..2 {
            prop_assert!(none[b] <= half[b]);
            prop_assert!(half[b] <= 0.5 * (none[b] + whole[b]) + 1e-9 * whole[b]);
        }
    }

    #[test]
    fn the_prior_itself_has_no_divergence_and_no_gradient(prior_std in 0.05..3.0f64) {
        let mu = Array3::zeros((2, 3, 2));
        let log_sigma = Array3::from_elem((2, 3, 2), prior_std.ln());
        let kl = kl_mean_field(mu.view(), log_sigma.view(), prior_std).unwrap();
        prop_assert!(kl.iter().all(|kl| kl.abs() < 1e-12));
        let ones = array![1.0, 1.0];
        let gradients =
            kl_mean_field_vjp(mu.view(), log_sigma.view(), prior_std, ones.view()).unwrap();
        prop_assert!(gradients.mu.iter().all(|&g| g == 0.0));
        prop_assert!(gradients.log_sigma.iter().all(|g| g.abs() < 1e-12));
    }
}
