//! The Gaussian estimator: normal spectral points whose standard deviations are learned.

use bochner_kernels::{SpectralPoints, squared_kernel_matrix};
use bochner_numerics::check::{assert_gradient, random};
use bochner_spectral::{GaussianPoints, softmax_log_std};
use ndarray::{Array2, ArrayView1, ArrayView2, array};

fn points(log_std: ArrayView1<f64>, eps: ArrayView2<f64>) -> Array2<f64> {
    GaussianPoints { log_std }.points(eps).unwrap()
}

#[test]
fn gradients_agree_with_finite_differences() {
    let (eps, cotangent): (Array2<f64>, Array2<f64>) =
        (random((5, 3), "eps"), random((5, 3), "cotangent"));
    for log_std in [array![0.3, -0.7, 0.1], array![-0.4]] {
        let density = GaussianPoints {
            log_std: log_std.view(),
        };
        let got = density.points_vjp(eps.view(), cotangent.view()).unwrap();
        let value = |s: ArrayView1<f64>, e: ArrayView2<f64>| (points(s, e) * &cotangent).sum();
        assert_gradient(&got.log_std, &log_std, |s| value(s, eps.view()));
        assert_gradient(&got.eps, &eps, |e| value(log_std.view(), e));
    }
}

#[test]
fn it_starts_at_the_similarity_of_softmax() {
    let (eps, x): (Array2<f64>, Array2<f64>) = (random((20_000, 4), "eps"), random((6, 4), "x"));
    let log_std = array![softmax_log_std::<f64>(4).unwrap()];
    let w = points(log_std.view(), eps.view());
    let w = SpectralPoints::Stationary { w: w.view() };
    let got = squared_kernel_matrix(x.view(), x.view(), &w).unwrap();
    for ((i, j), got) in got.indexed_iter() {
        let t = &x.row(i) - &x.row(j);
        let want = (-t.dot(&t) / (2.0 * 4.0_f64.sqrt())).exp();
        assert!((got - want).abs() < 0.03);
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let (two, eps) = (array![0.0, 0.0], Array2::zeros((1, 3)));
    let density = GaussianPoints {
        log_std: two.view(),
    };
    let error = density.points(eps.view()).unwrap_err().to_string();
    assert!(error.starts_with("`log_std` has length 2"), "{error}");
    let none: Array2<f64> = Array2::zeros((2, 0));
    let error = density.points(none.view()).unwrap_err().to_string();
    assert!(error.starts_with("`width` is 0"), "{error}");
    assert!(softmax_log_std::<f64>(0).is_err());
}

#[test]
fn finite_arguments_give_no_nan() {
    let (log_std, eps) = (array![800.0], array![[0.0, 1e300], [-2.0, -1e300]]);
    let density = GaussianPoints {
        log_std: log_std.view(),
    };
    let w = density.points(eps.view()).unwrap();
    assert!(w.iter().all(|w: &f64| !w.is_nan()), "{w}");
    for cotangent in [
        array![[0.0, 0.0], [0.0, 0.0]],
        array![[1.0, 1e300], [1.0, 1e300]],
    ] {
        let g = density.points_vjp(eps.view(), cotangent.view()).unwrap();
        let mut all = g.log_std.iter().chain(&g.eps);
        assert!(all.all(|g: &f64| g.is_finite()), "{g:?}");
    }
}
