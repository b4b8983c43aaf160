//! Random features of $e^{x \cdot y}$, and of kernels like it.

use crate::testing::refused;
use bochner_kernels::{RandomFeatureMap, random_feature_map, random_feature_map_vjp};
use bochner_numerics::Real;
use bochner_numerics::check::{assert_gradient, random};
use ndarray::{Array2, ArrayView2};

const MAPS: [RandomFeatureMap; 4] = [
    RandomFeatureMap::Positive,
    RandomFeatureMap::Hyperbolic,
    RandomFeatureMap::Trigonometric,
    RandomFeatureMap::Relu { epsilon: 0.1 },
];

/// Widths and numbers of frequencies, below, at and above what wide instructions take at a time.
const SIZES: [(usize, usize); 4] = [(3, 5), (16, 16), (17, 33), (40, 7)];

#[test]
fn features_are_what_the_table_says() {
    for ((d, m), map) in SIZES
        .into_iter()
        .flat_map(|size| MAPS.map(|map| (size, map)))
    {
        let (x, w) = (random::<f64, _>((3, d), "x"), random((m, d), "w"));
        let phi = random_feature_map(x.view(), w.view(), map).unwrap();
        for (i, x) in x.rows().into_iter().enumerate() {
            for (r, w) in w.rows().into_iter().enumerate() {
                let (u, half) = (w.dot(&x), x.dot(&x) / 2.0);
                let (first, second) = match map {
                    RandomFeatureMap::Positive => ((u - half).exp(), None),
                    RandomFeatureMap::Hyperbolic => {
                        let both = [u, -u].map(|u| (u - half).exp() / 2.0_f64.sqrt());
                        (both[0], Some(both[1]))
                    }
                    RandomFeatureMap::Trigonometric => {
                        (half.exp() * u.cos(), Some(half.exp() * u.sin()))
                    }
                    RandomFeatureMap::Relu { epsilon } => (u.max(0.0) + epsilon, None),
                };
                let close = |got: f64, want: f64| {
                    let error = (got * (m as f64).sqrt() - want).abs();
                    assert!(error < 1e-13 * want.abs().max(1.0), "{map:?} of {d}, {m}");
                };
                close(phi[[i, r]], first);
                if let Some(second) = second {
                    close(phi[[i, m + r]], second);
                }
            }
        }
    }
}

#[test]
fn gradients_agree_with_finite_differences() {
    for ((d, m), map) in SIZES
        .into_iter()
        .flat_map(|size| MAPS.map(|map| (size, map)))
    {
        let (x, w) = (random((4, d), "x") * 0.4, random((m, d), "w"));
        let cotangent = random((4, map.features(m)), "cotangent");
        let value = |x: ArrayView2<f64>, w: ArrayView2<f64>| {
            (&random_feature_map(x, w, map).unwrap() * &cotangent).sum()
        };
        let got = random_feature_map_vjp(x.view(), w.view(), map, cotangent.view());
        let [along_x, along_w] = got.unwrap();
        assert_gradient(&along_x, &x, |x| value(x, w.view()));
        assert_gradient(&along_w, &w, |w| value(x.view(), w));
    }
}

#[test]
fn inactive_rectified_features_have_no_slope_for_any_epsilon() {
    fn holds<T: Real>() {
        // The angle is -1.
        let (x, w) = (Array2::ones((1, 1)), -Array2::<T>::ones((1, 1)));
        for k in 1..200 {
            let epsilon = f64::from(k) / 200.0;
            let (map, cotangent) = (RandomFeatureMap::Relu { epsilon }, x.view());
            let got = random_feature_map_vjp(x.view(), w.view(), map, cotangent).unwrap();
            let none = Array2::zeros((1, 1));
            assert_eq!(got, [none.clone(), none], "{epsilon} in {}", T::NAME);
        }
    }
    holds::<f32>();
    holds::<f64>();
}

#[test]
fn what_does_not_fit_is_named() {
    let (x, w) = (random::<f64, _>((4, 3), "x"), random((5, 2), "w"));
    let got = random_feature_map(x.view(), w.view(), RandomFeatureMap::Positive);
    assert_eq!(refused(got), "x");
    for epsilon in [1e-50, 1e39] {
        let (map, x) = (
            RandomFeatureMap::Relu { epsilon },
            random::<f32, _>((4, 3), "x"),
        );
        assert_eq!(
            refused(random_feature_map(x.view(), x.view(), map)),
            "epsilon"
        );
    }
    for epsilon in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let map = RandomFeatureMap::Relu { epsilon };
        assert_eq!(
            refused(random_feature_map(x.view(), x.view(), map)),
            "epsilon"
        );
    }
    let cotangent = random((4, 5), "cotangent");
    let map = RandomFeatureMap::Hyperbolic;
    let got = random_feature_map_vjp(x.view(), x.view(), map, cotangent.view());
    assert_eq!(refused(got), "cotangent");
}
