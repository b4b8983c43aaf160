//! Correlation matrices from lower-triangular factors.

use crate::testing::factors;
use bochner_copula::{
    Error, correlation, correlation_vjp, half_neg_log_det, half_neg_log_det_vjp, normalise,
    normalise_vjp,
};
use bochner_numerics::check::{self, assert_gradient};
use ndarray::{Array3, array, aview1, s};

fn stack() -> Array3<f64> {
    factors(1, 3, 4).index_axis_move(ndarray::Axis(0), 0)
}

#[test]
fn gradients_agree_with_finite_differences() {
    let (x, g) = (stack(), check::random((3, 4, 4), "g"));
    let got = normalise_vjp(x.view(), g.view()).unwrap();
    assert_gradient(&got, &x, |x| (&normalise(x).unwrap() * &g).sum());

    let got = correlation_vjp(x.view(), g.view()).unwrap();
    assert_gradient(&got, &x, |x| (&correlation(x).unwrap() * &g).sum());

    let g = array![0.7, -1.3, 2.0];
    let got = half_neg_log_det_vjp(x.view(), g.view()).unwrap();
    assert_gradient(&got, &x, |x| half_neg_log_det(x).unwrap().dot(&g));
}

#[test]
fn two_heads_by_hand() {
    let lh = normalise(array![[[2.0, f64::NAN], [3.0, 4.0]]].view()).unwrap();
    assert_eq!(lh, array![[[1.0, 0.0], [0.6, 0.8]]]);
    let corr = correlation(lh.view()).unwrap();
    let want = array![[[1.0, 0.6], [0.6, 1.0]]];
    assert!(corr.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-15));
    let value = half_neg_log_det(lh.view()).unwrap()[0];
    assert!((value + 0.5 * (1.0_f64 - 0.36).ln()).abs() < 1e-15);
}

#[test]
fn extreme_factors_do_not_overflow() {
    let lh = normalise(array![[[1e-200, 0.0], [1e200, 1e200]]].view()).unwrap();
    assert!((lh[[0, 1, 1]] - 0.5_f64.sqrt()).abs() < 1e-15);
    let half = 0.5_f64.sqrt();
    let huge = normalise(array![[[1.0, 0.0], [f64::MAX, f64::MAX]]].view()).unwrap();
    assert!(
        huge.slice(s![0, 1, ..])
            .iter()
            .all(|x| (x - half).abs() < 1e-15)
    );
    let weak = array![[[1.0_f32, 0.0], [1e-6, 1.0]]];
    let value = half_neg_log_det(weak.view()).unwrap()[0];
    assert!((value - 5e-13).abs() < 1e-18);
}

#[test]
fn a_diagonal_that_rounds_to_zero_stays_positive() {
    let lh = normalise(array![[[1.0, 0.0], [1e200, 1e-200]]].view()).unwrap();
    assert_eq!(lh, array![[[1.0, 0.0], [1.0, f64::MIN_POSITIVE]]]);
    let lh = normalise(array![[[1.0_f32, 0.0], [-1e30, 1e-30]]].view()).unwrap();
    assert_eq!(lh, array![[[1.0, 0.0], [-1.0, f32::MIN_POSITIVE]]]);
    assert!(half_neg_log_det(lh.view()).unwrap()[0].is_finite());
}

#[test]
fn what_is_no_factor_is_refused() {
    let zero = normalise(array![[[1.0, 0.0], [1.0, 0.0]]].view());
    assert!(matches!(zero, Err(Error::Diagonal { row: 1, got, .. }) if got == 0.0));
    let nan = normalise(array![[[1.0, 0.0], [f64::NAN, 1.0]]].view());
    let said = |error: Error| error.to_string();
    assert!(said(nan.unwrap_err()).starts_with("`factor` is NaN at [0, 1, 0]"));
    let wide = correlation(Array3::<f32>::ones((1, 2, 3)).view());
    assert!(said(wide.unwrap_err()).contains("must have [1, 2, 2]"));
    let none = half_neg_log_det(Array3::<f32>::ones((0, 2, 2)).view());
    assert!(said(none.unwrap_err()).contains("no elements"));
    let short = half_neg_log_det_vjp(Array3::<f32>::ones((2, 2, 2)).view(), aview1(&[1.0]));
    assert!(said(short.unwrap_err()).starts_with("`cotangent` has length 1"));
}

#[test]
fn strides_do_not_matter() {
    let x = stack();
    let mut fortran = Array3::zeros((4, 4, 3));
    fortran.assign(&x.view().permuted_axes([1, 2, 0]));
    let same = fortran.view().permuted_axes([2, 0, 1]);
    assert_eq!(normalise(same).unwrap(), normalise(x.view()).unwrap());
}
