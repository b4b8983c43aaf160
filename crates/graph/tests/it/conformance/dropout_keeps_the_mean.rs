//! Dropout on the weights: nothing at rate 0, the same mean otherwise, decided by the seed alone.

use crate::conformance::case::{Case, KINDS, Kind};
use bochner_numerics::{DropoutMask, Seed};
use ndarray::Array2;

#[test]
fn at_rate_zero_nothing_changes() {
    for kind in KINDS {
        let case = Case::<f64>::small(kind);
        let dropped = case.clone().with_dropout(0.0);
        assert_eq!(dropped.attend().output, case.attend().output);
    }
}

#[test]
fn the_mean_over_seeds_is_what_it_is_without() {
    let case = Case::<f64>::small(Kind::Classic);
    let want = case.attend().output;
    let draws = 4000;
    let mut mean = Array2::<f64>::zeros(want.raw_dim());
    for seed in 0..draws {
        let dropout = Some(DropoutMask::new(0.5, Seed::new(seed)).unwrap());
        let output = Case {
            dropout,
            ..case.clone()
        }
        .attend()
        .output;
        mean += &(output / draws as f64);
    }
    // Each draw is off by at most the values' size: five standard errors.
    let off = (&mean - &want).fold(0.0, |m: f64, x| m.max(x.abs()));
    assert!(off < 5.0 * 2.0 / (draws as f64).sqrt(), "{off}");
}

#[test]
fn weights_are_returned_before_dropout_and_seeds_decide() {
    let case = Case::<f64>::small(Kind::Classic);
    let dropped = case.clone().with_dropout(0.6);
    assert_eq!(dropped.weights(), case.weights());
    assert_ne!(dropped.attend().output, case.attend().output);
    assert_eq!(dropped.attend().output, dropped.attend().output);
    let other = Case {
        dropout: Some(DropoutMask::new(0.6, Seed::new(6)).unwrap()),
        ..case
    };
    assert_ne!(dropped.attend().output, other.attend().output);
}
