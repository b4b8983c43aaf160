//! Dropout.

use crate::testing::gradients_are_right;
use bochner_numerics::Seed;
use bochner_ops::{Dropout, Mode, dropout_mask};

#[test]
fn the_gradient_passes_the_mask_of_the_values() {
    let mask = dropout_mask(0.3, Mode::Training(Seed::new(1))).unwrap();
    gradients_are_right(Dropout(mask.unwrap()), &[&[5, 8]]);
    let kept = (0..1000).filter(|&i| mask.unwrap().keeps(i)).count();
    assert!(
        (650..750).contains(&kept),
        "{kept} of 1000 are kept at the rate 0.3"
    );
}

#[test]
fn only_training_drops_and_rates_are_checked_always() {
    let modes = [Mode::Evaluation, Mode::Training(Seed::new(1))];
    assert_eq!(
        modes.map(|mode| dropout_mask(0.5, mode).unwrap().is_some()),
        [false, true]
    );
    for mode in modes {
        assert_eq!(dropout_mask(0.0, mode), Ok(None));
        for rate in [-0.1, 1.0, f64::NAN] {
            assert!(dropout_mask(rate, mode).is_err());
        }
    }
}
