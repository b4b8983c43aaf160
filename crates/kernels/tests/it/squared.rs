//! The square of the kernel that the features give: a similarity that is never negative.

use crate::testing::refused;
use bochner_kernels::{SpectralPoints, squared_kernel_matrix, squared_kernel_matrix_vjp};
use bochner_numerics::check::{assert_gradient, random};
use ndarray::{ArrayView2, Axis, concatenate};

#[test]
fn gradients_agree_with_finite_differences() {
    let (x, y, cotangent) = (
        random((3, 2), "x"),
        random((4, 2), "y"),
        random((3, 4), "g"),
    );
    let both = random((10, 2), "w");
    let value = |x: ArrayView2<f64>, y: ArrayView2<f64>, both: ArrayView2<f64>| {
        let (w1, w2) = both.split_at(Axis(0), 5);
        let points = SpectralPoints::Nonstationary { w1, w2 };
        (squared_kernel_matrix(x, y, &points).unwrap() * &cotangent).sum()
    };
    let (w1, w2) = both.view().split_at(Axis(0), 5);
    let points = SpectralPoints::Nonstationary { w1, w2 };
    let got = squared_kernel_matrix_vjp(x.view(), y.view(), &points, cotangent.view());
    let got = got.unwrap();
    let along_points = concatenate![Axis(0), got.points.w1, got.points.w2.unwrap()];
    assert_gradient(&got.x, &x, |x| value(x, y.view(), both.view()));
    assert_gradient(&got.y, &y, |y| value(x.view(), y, both.view()));
    assert_gradient(&along_points, &both, |both| value(x.view(), y.view(), both));
}

#[test]
fn arguments_that_do_not_fit_are_named() {
    let (x, w) = (random::<f64, _>((3, 2), "x"), random((5, 2), "w"));
    let points = SpectralPoints::Stationary { w: w.view() };
    let error = squared_kernel_matrix_vjp(x.view(), x.view(), &points, x.view());
    assert_eq!(refused(error), "cotangent");
}
