//! Tests of the feature map.

use crate::testing::refused;
use bochner_kernels::{SpectralPoints, feature_map, feature_map_vjp, feature_map_with_vjp};
use bochner_numerics::check::{assert_gradient, random};
use bochner_numerics::{Buffers, Real};
use ndarray::{Array2, ArrayView2, array};
use std::ops::Range;

/// Rows whose angles are computed together.
const BLOCK: usize = 128;

fn features<T: Real>(x: ArrayView2<T>, points: &SpectralPoints<T>) -> Array2<T> {
    let mut phi = Array2::zeros((x.nrows(), points.features()));
    feature_map(x, points, phi.view_mut(), &Buffers::default()).unwrap();
    phi
}

fn pairing(phi: &Array2<f64>, cotangent: &Array2<f64>) -> f64 {
    (phi * cotangent).sum()
}

#[test]
fn features_agree_with_the_definition_across_blocks() {
    // More rows than a task has, which are eight blocks.
    let length = 9 * BLOCK + 3;
    let (x, w1) = (random::<f64, _>((length, 3), "x"), random((5, 3), "w1"));
    let w2 = random((5, 3), "w2");
    let nonstationary = SpectralPoints::Nonstationary {
        w1: w1.view(),
        w2: w2.view(),
    };
    let phi_s = features(x.view(), &SpectralPoints::Stationary { w: w1.view() });
    let phi_ns = features(x.view(), &nonstationary);
    for t in [0, BLOCK - 1, BLOCK, 8 * BLOCK - 1, 8 * BLOCK, length - 1] {
        for r in 0..5 {
            let a: f64 = x.row(t).dot(&w1.row(r));
            let b: f64 = x.row(t).dot(&w2.row(r));
            let close = |got: f64, want: f64| assert!((got - want).abs() < 1e-12);
            close(phi_s[[t, r]], a.cos());
            close(phi_s[[t, 5 + r]], a.sin());
            close(phi_ns[[t, r]], a.cos() + b.cos());
            close(phi_ns[[t, 5 + r]], a.sin() + b.sin());
        }
    }
}

#[test]
fn stationary_gradients_agree_with_finite_differences() {
    let (x, w) = (random((4, 3), "x"), random((5, 3), "w"));
    let cotangent = random((4, 10), "cotangent");
    let points = SpectralPoints::Stationary { w: w.view() };
    let got = feature_map_vjp(x.view(), &points, cotangent.view(), &Buffers::default()).unwrap();
    assert_gradient(&got.x, &x, |x| pairing(&features(x, &points), &cotangent));
    assert_gradient(&got.points.w1, &w, |w| {
        let points = SpectralPoints::Stationary { w };
        pairing(&features(x.view(), &points), &cotangent)
    });
    assert_eq!(got.points.w2, None);
}

#[test]
fn nonstationary_gradients_agree_with_finite_differences_across_blocks() {
    let length = BLOCK + 2;
    let x = random((length, 2), "x");
    let (w1, w2) = (random((3, 2), "w1"), random((3, 2), "w2"));
    let cotangent = random((length, 6), "cotangent");
    let value = |x: ArrayView2<f64>, w1: ArrayView2<f64>, w2: ArrayView2<f64>| {
        let points = SpectralPoints::Nonstationary { w1, w2 };
        pairing(&features(x, &points), &cotangent)
    };
    let points = SpectralPoints::Nonstationary {
        w1: w1.view(),
        w2: w2.view(),
    };
    let got = feature_map_vjp(x.view(), &points, cotangent.view(), &Buffers::default()).unwrap();
    assert_gradient(&got.x, &x, |x| value(x, w1.view(), w2.view()));
    assert_gradient(&got.points.w1, &w1, |w1| value(x.view(), w1, w2.view()));
    assert_gradient(&got.points.w2.unwrap(), &w2, |w2| {
        value(x.view(), w1.view(), w2)
    });
}

#[test]
fn the_memory_layout_of_the_arguments_does_not_matter() {
    let (x, w1) = (random::<f32, _>((6, 4), "x"), random((3, 4), "w1"));
    let (w2, cotangent) = (random((3, 4), "w2"), random((6, 6), "cotangent"));
    let turned = [&x, &w1, &w2, &cotangent].map(|a| a.t().as_standard_layout().into_owned());
    let points = SpectralPoints::Nonstationary {
        w1: w1.view(),
        w2: w2.view(),
    };
    let turned_points = SpectralPoints::Nonstationary {
        w1: turned[1].t(),
        w2: turned[2].t(),
    };
    let mut phi = Array2::zeros((6, 6));
    let columns = phi.view_mut().reversed_axes();
    feature_map(turned[0].t(), &turned_points, columns, &Buffers::default()).unwrap();
    assert_eq!(phi.t(), features(x.view(), &points));
    assert_eq!(
        feature_map_vjp(x.view(), &points, cotangent.view(), &Buffers::default()),
        feature_map_vjp(
            turned[0].t(),
            &turned_points,
            turned[3].t(),
            &Buffers::default()
        )
    );
}

#[test]
fn a_row_that_is_not_finite_spoils_no_other() {
    let (mut x, w) = (random::<f32, _>((9, 4), "x"), random((3, 4), "w"));
    let points = SpectralPoints::Stationary { w: w.view() };
    let want = features(x.view(), &points);
    x.row_mut(4).fill(f32::INFINITY);
    let got = features(x.view(), &points);
    for t in (0..9).filter(|&t| t != 4) {
        assert_eq!(got.row(t), want.row(t));
    }
    assert!(got.row(4).iter().all(|v| v.is_nan()));
}

#[test]
fn a_point_that_is_not_finite_spoils_its_own_features_in_every_row() {
    let (x, w1) = (random::<f32, _>((9, 4), "x"), random((3, 4), "w1"));
    let w2 = random((3, 4), "w2");
    for poison in [f32::NAN, f32::INFINITY] {
        for n in 0..4 {
            let mut spoilt = w2.clone();
            spoilt[[1, n]] = poison;
            let of = |w2: &Array2<f32>| {
                let (w1, w2) = (w1.view(), w2.view());
                features(x.view(), &SpectralPoints::Nonstationary { w1, w2 })
            };
            let (want, got) = (of(&w2), of(&spoilt));
            for ((t, column), &got) in got.indexed_iter() {
                let spoilt = column % 3 == 1;
                assert!(if spoilt {
                    got.is_nan()
                } else {
                    got == want[[t, column]]
                });
            }
        }
    }
}

#[test]
fn angles_that_overflow_keep_their_phase_in_single_precision() {
    let (x, w) = (
        array![[3e38_f32, 1.0], [2e38, -3e38]],
        array![[2.0_f32, 0.0], [3e38, 3e38]],
    );
    let points = SpectralPoints::Stationary { w: w.view() };
    let phi = features(x.view(), &points);
    for ((t, r), _) in Array2::<()>::default((2, 2)).indexed_iter() {
        let products = x.row(t).into_iter().zip(w.row(r));
        let angle: f64 = products.map(|(&x, &w)| f64::from(x) * f64::from(w)).sum();
        assert!((f64::from(phi[[t, r]]) - angle.cos()).abs() < 1e-6);
        assert!((f64::from(phi[[t, 2 + r]]) - angle.sin()).abs() < 1e-6);
    }
    let (x, w) = (
        x.mapv(|x| f64::from(x).powi(8)),
        w.mapv(|w| f64::from(w).powi(8)),
    );
    let points = SpectralPoints::Stationary { w: w.view() };
    let phi = features(x.view(), &points);
    assert!(phi.iter().all(|x| x.abs() <= 1.0));
}

#[test]
fn no_rows_give_no_features_and_zero_gradients() {
    let (x, w) = (random::<f64, _>((0, 4), "x"), random((3, 4), "w"));
    let points = SpectralPoints::Stationary { w: w.view() };
    let phi = features(x.view(), &points);
    assert_eq!(phi.dim(), (0, 6));
    let gradients = feature_map_vjp(x.view(), &points, phi.view(), &Buffers::default()).unwrap();
    assert_eq!(gradients.points.w1, Array2::<f64>::zeros((3, 4)));
}

#[test]
fn arguments_that_do_not_fit_are_named() {
    let (x, w) = (random::<f64, _>((2, 3), "x"), random((5, 3), "w"));
    let points = SpectralPoints::Stationary { w: w.view() };
    let (narrow, buffers) = (random((2, 2), "x"), Buffers::default());
    let mut phi = Array2::zeros((2, 10));
    let error = feature_map(narrow.view(), &points, phi.view_mut(), &buffers);
    assert_eq!(refused(error), "x");
    let error = feature_map(x.view(), &points, phi.view_mut().reversed_axes(), &buffers);
    assert_eq!(refused(error), "phi");
    let error = feature_map_vjp(x.view(), &points, x.view(), &buffers);
    assert_eq!(refused(error), "cotangent");
}

#[test]
fn features_and_their_gradient_in_one_pass_are_those_of_two() {
    let length = 2 * BLOCK + 3;
    let (x, cotangent) = (
        random::<f32, _>((length, 3), "x"),
        random((length, 10), "cotangent"),
    );
    let (w1, w2) = (random((5, 3), "w1"), random((5, 3), "w2"));
    let (w1, w2) = (w1.view(), w2.view());
    let buffers = Buffers::default();
    let stationary = SpectralPoints::Stationary { w: w1 };
    for points in [stationary, SpectralPoints::Nonstationary { w1, w2 }] {
        let mut seen = Vec::new();
        let one_pass = |rows: Range<usize>, phi: &[f32], out: &mut [f32]| {
            assert_eq!(rows.start * 10, seen.len());
            seen.extend_from_slice(phi);
            out.copy_from_slice(&cotangent.as_slice().unwrap()[rows.start * 10..rows.end * 10]);
        };
        let got = feature_map_with_vjp(x.view(), &points, one_pass, &buffers);
        assert_eq!(seen, features(x.view(), &points).as_slice().unwrap());
        assert_eq!(
            got,
            feature_map_vjp(x.view(), &points, cotangent.view(), &buffers)
        );
    }
}
