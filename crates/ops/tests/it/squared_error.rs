//! The loss of a regression.

use crate::testing::{gradients_are_right, pull_back, run};
use bochner_ops::{Rows, SquaredError};
use ndarray::{arr0, arr1, arr2};

#[test]
fn gradients_agree_with_finite_differences() {
    let rows = [
        Rows::All,
        Rows::At(&[0, 2, 2]),
        Rows::Weighted(&[0.5, 0.0, 3.0]),
    ];
    for rows in rows {
        let loss = SquaredError::new(rows, 3).unwrap();
        gradients_are_right(loss, &[&[3, 4], &[3, 4]]);
    }
}

#[test]
fn rows_count_as_often_as_they_are_named() {
    let inputs = [[[4.0], [8.0], [16.0]], [[0.0]; 3]].map(|x| arr2(&x).into_dyn());
    let of =
        |rows: Rows<'_>| -> f64 { run(&SquaredError::new(rows, 3).unwrap(), &inputs).0[0].sum() };
    assert_eq!(of(Rows::At(&[2, 0, 2, 2])), 0.25 * 16.0 + 0.75 * 256.0);
    assert_eq!(of(Rows::Weighted(&[1.0, 0.0, 3.0])), 196.0);
    assert!((of(Rows::All) - 112.0).abs() < 1e-12);
}

#[test]
fn rows_of_weight_zero_are_not_read() {
    let loss = SquaredError::new(Rows::At(&[1]), 2).unwrap();
    let inputs = [[f64::NAN, 3.0], [f64::INFINITY, 1.0]].map(|x| arr1(&x).into_dyn());
    let (value, ()) = run(&loss, &inputs);
    assert_eq!(value, [arr0(4.0).into_dyn()]);
    let wanted = vec![Some(Vec::new()), None];
    let gradients = pull_back(&loss, &inputs, &(), &[arr0(1.0).into_dyn()], wanted);
    assert_eq!(gradients, [Some(vec![0.0, 4.0]), None]);
}

#[test]
fn selections_that_make_no_sense_are_refused() {
    let wrong = [
        Rows::At(&[]),
        Rows::At(&[3]),
        Rows::Weighted(&[1.0]),
        Rows::Weighted(&[0.0; 3]),
        Rows::Weighted(&[1.0, -1.0, 1.0]),
        Rows::Weighted(&[1.0, f64::NAN, 1.0]),
        Rows::Weighted(&[f64::MAX; 3]),
    ];
    for rows in wrong {
        assert!(SquaredError::new(rows, 3).is_err(), "{rows:?}");
    }
    for rows in [
        Rows::All,
        Rows::At(&[]),
        Rows::At(&[0]),
        Rows::Weighted(&[]),
    ] {
        let error = SquaredError::new(rows, 0).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`count of rows` is 0, but must be at least 1"
        );
    }
}
