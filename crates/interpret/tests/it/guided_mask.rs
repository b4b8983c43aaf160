//! Masks guided by attention.

use bochner_interpret::attention_guided_mask;
use ndarray::{Array1, array};

#[test]
fn the_set_holds_the_seed_and_has_the_size_asked_for() {
    let row = array![0.1, 0.4, 0.05, 0.25, 0.2];
    for seed in 0..5 {
        let all = attention_guided_mask(row.view(), seed, 5).unwrap();
        for count in 1..=5 {
            let masked = attention_guided_mask(row.view(), seed, count).unwrap();
            assert_eq!(masked, all[..count]);
            assert_eq!(masked[0], seed);
        }
        assert!(attention_guided_mask(row.view(), seed, 6).is_err());
    }
    assert_eq!(
        attention_guided_mask(row.view(), 2, 5).unwrap(),
        [2, 1, 3, 4, 0]
    );
}

#[test]
fn equal_weights_are_taken_in_the_order_of_tokens() {
    let row = array![0.0, -0.0, 0.0, 0.0_f64];
    assert_eq!(attention_guided_mask(row.view(), 3, 3).unwrap(), [3, 0, 1]);
}

#[test]
fn excluded_tokens_and_wrong_arguments_are_refused() {
    let row = array![0.5, f64::NEG_INFINITY, 0.5];
    assert_eq!(attention_guided_mask(row.view(), 0, 2).unwrap(), [0, 2]);
    assert!(attention_guided_mask(row.view(), 0, 3).is_err());
    assert!(attention_guided_mask(row.view(), 3, 1).is_err());
    assert!(attention_guided_mask(row.view(), 0, 0).is_err());
    let error = attention_guided_mask(array![0.5, f64::NAN].view(), 0, 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`weights[1]` is NaN, but must be a number"
    );
}

/// Sorts that are not stable leave the order of short rows as it is.
#[test]
fn so_are_equal_weights_of_long_rows() {
    let row: Array1<f64> = (0..100).map(|i| f64::from(i % 2)).collect();
    let got = attention_guided_mask(row.view(), 0, 100).unwrap();
    let others = (1..100_usize).step_by(2).chain((2..100).step_by(2));
    assert!(
        got[0] == 0 && got[1..].iter().copied().eq(others),
        "{got:?}"
    );
}
