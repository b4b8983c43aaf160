//! Matrices and comparisons that the tests share.

use ndarray::Array2;

/// A covariance matrix over several blocks of either library, with a condition of about 1e4.
pub(crate) fn covariance(order: usize) -> Array2<f64> {
    Array2::from_shape_fn((order, order), |(i, j)| {
        let smooth = (-0.02 * (i as f64 - j as f64).powi(2)).exp();
        if i == j { smooth + 1e-3 } else { smooth }
    })
}

pub(crate) fn assert_close(got: &Array2<f64>, want: &Array2<f64>, bound: f64) {
    assert_eq!(got.dim(), want.dim());
    let off = (got - want).fold(
        0.0,
        |m: f64, x| if x.is_nan() { *x } else { m.max(x.abs()) },
    );
    assert!(off <= bound, "{off:e} is more than {bound:e}");
}
