//! The mean of a sequence.

use crate::testing::gradients_are_right;
use bochner_ops::{MeanOverTime, check_lengths};

#[test]
fn gradients_agree_with_finite_differences() {
    for lengths in [None, Some(vec![2, 4, 1]), Some(vec![0, 4, 1])] {
        gradients_are_right(MeanOverTime { lengths }, &[&[3, 4, 5]]);
    }
}

#[test]
fn the_mean_of_nothing_is_zero() {
    let nothing = MeanOverTime {
        lengths: Some(vec![0, 1]),
    };
    let x = ndarray::ArrayD::from_shape_vec(vec![2, 1, 1], vec![f64::NAN, 3.0]).unwrap();
    let (means, ()) = crate::testing::run(&nothing, &[x]);
    assert_eq!(means[0].as_slice().unwrap(), [0.0, 3.0]);
}

#[test]
fn lengths_that_do_not_fit_are_refused() {
    assert_eq!(check_lengths(&[0, 4], 2, 4), Ok(()));
    for wrong in [&[1, 5][..], &[usize::MAX, 1], &[1], &[1, 1, 1]] {
        assert!(check_lengths(wrong, 2, 4).is_err(), "{wrong:?}");
    }
    let error = check_lengths(&[1, 5], 2, 4).unwrap_err().to_string();
    assert_eq!(
        error,
        "`lengths[1]` is 5, but must be at most 4, the number of positions"
    );
}
