//! The kernel matrix that the features give, and its gradient.

use crate::testing::refused;
use bochner_kernels::{SpectralPoints, kernel_matrix, kernel_matrix_vjp};
use bochner_numerics::check::{assert_gradient, random};
use ndarray::{Array2, ArrayView2};

#[test]
fn the_matrix_agrees_with_the_double_sum() {
    let (x, y) = (random((3, 2), "x"), random((4, 2), "y"));
    let (w1, w2) = (random((5, 2), "w1"), random((5, 2), "w2"));
    let points = SpectralPoints::Nonstationary {
        w1: w1.view(),
        w2: w2.view(),
    };
    let f = kernel_matrix(x.view(), y.view(), &points).unwrap();
    for ((i, j), &got) in f.indexed_iter() {
        let term = |a: &Array2<f64>, b: &Array2<f64>, r| {
            (a.row(r).dot(&x.row(i)) - b.row(r).dot(&y.row(j))).cos()
        };
        let pair =
            |r| term(&w1, &w1, r) + term(&w1, &w2, r) + term(&w2, &w1, r) + term(&w2, &w2, r);
        let want = (0..5).map(pair).sum::<f64>() / 20.0;
        assert!((got - want).abs() < 1e-12);
    }
}

#[test]
fn gradients_agree_with_finite_differences() {
    let (x, y) = (random((3, 2), "x"), random((4, 2), "y"));
    let (w1, w2) = (random((5, 2), "w1"), random((5, 2), "w2"));
    let cotangent = random((3, 4), "cotangent");
    type View<'a> = ArrayView2<'a, f64>;
    let value = |x: View, y: View, w1: View, w2: View| {
        let points = SpectralPoints::Nonstationary { w1, w2 };
        (kernel_matrix(x, y, &points).unwrap() * &cotangent).sum()
    };
    let (xv, yv, w1v, w2v) = (x.view(), y.view(), w1.view(), w2.view());
    let points = SpectralPoints::Nonstationary { w1: w1v, w2: w2v };
    let got = kernel_matrix_vjp(xv, yv, &points, cotangent.view()).unwrap();
    assert_gradient(&got.x, &x, |x| value(x, yv, w1v, w2v));
    assert_gradient(&got.y, &y, |y| value(xv, y, w1v, w2v));
    assert_gradient(&got.points.w1, &w1, |w1| value(xv, yv, w1, w2v));
    assert_gradient(&got.points.w2.unwrap(), &w2, |w2| value(xv, yv, w1v, w2));
}

#[test]
fn the_side_that_does_not_fit_is_named() {
    let (x, narrow, w) = (
        random((3, 2), "x"),
        random((4, 1), "y"),
        random((5, 2), "w"),
    );
    let points = SpectralPoints::Stationary { w: w.view() };
    let error =
        |x: &Array2<f64>, y: &Array2<f64>| refused(kernel_matrix(x.view(), y.view(), &points));
    assert_eq!(error(&x, &narrow), "y");
    assert_eq!(error(&narrow, &x), "x");
    assert_eq!(error(&narrow, &narrow), "w");
}
