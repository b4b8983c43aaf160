//! Written down once more, pair by pair and without any of the engine's tricks.

use crate::conformance::common::*;
use crate::conformance::plain::{attend, attend_vjp, weights};
use bochner_attention::{
    Magnitude,
    kernels::{self, Points},
};
use bochner_numerics::check::largest;
use bochner_numerics::{finite_difference, relative_error};
use ndarray::{Array4, ArrayBase, Data, Dimension};

/// Outputs, weights and penalties of a mechanism.
pub(crate) fn weights_follow_the_formula(case: &Case<f64>) {
    case.with_every_mask(5, 6, |case, example, mask, label| {
        for pass in [EVALUATION, TRAINING] {
            let want = case.reference(example, mask, &pass);
            let got = case.forward(example, mask, &pass).unwrap();
            assert_near(&got.output, &want.output, label);
            assert_near(&got.penalty, &want.penalty, label);
            let weights = case.weights(example, mask, &pass);
            assert_eq!(weights.is_some(), want.weights.is_some(), "{label}");
            if let (Some(got), Some(want)) = (weights, want.weights) {
                assert_near(&got, &want, label);
            }
        }
    });
}

pub(crate) fn assert_near<D: Dimension>(
    got: &ArrayBase<impl Data<Elem = f64>, D>,
    want: &ArrayBase<impl Data<Elem = f64>, D>,
    label: &str,
) {
    assert_eq!(got.shape(), want.shape(), "{label}");
    let error = largest(&(got.to_owned() - want));
    assert!(error < 1e-12, "{label}: {error:e}");
}

#[test]
fn for_every_mechanism() {
    cases().iter().for_each(weights_follow_the_formula);
}

#[test]
fn across_blocks() {
    for case in few_cases() {
        let (example, mask) = (case.example(70, 150), long_mask(&case, 150));
        let want = case.reference(&example, &mask, &TRAINING);
        let got = case.forward(&example, &mask, &TRAINING).unwrap();
        assert_near(&got.output, &want.output, &case.name);
    }
}

/// Queries and keys whose kernel is exactly zero: `1 + cos(pi)` against no sine.
fn orthogonal() -> (Array4<f64>, Array4<f64>, [Array4<f64>; 2]) {
    let q = Array4::from_shape_fn((1, 1, 2, 2), |(.., n)| [1.0, 0.0][n]);
    let k = Array4::from_shape_fn((1, 1, 4, 2), |(.., j, n)| {
        [0.0, [0.5, -2.0, 0.7, 1.0][j]][n]
    });
    let w = |first: f64| Array4::from_shape_fn((1, 1, 1, 2), |(.., n)| [first, 0.0][n]);
    (q, k, [w(0.0), w(std::f64::consts::PI)])
}

/// The limit of a vanishing floor: where every kept similarity is zero, the magnitudes decide.
#[test]
fn where_every_similarity_vanishes_the_magnitudes_decide() {
    let (q, k, [w1, w2]) = orthogonal();
    let matrix = ndarray::array![[true, true, false, true], [false, false, true, false]];
    let mask = bochner_attention::Mask::none().with_matrix(matrix.view());
    let magnitude = |j: usize| (k[[0, 0, j, 1]].powi(2) / (2.0 * 2.0_f64.sqrt())).exp();
    let total = magnitude(0) + magnitude(1) + magnitude(3);
    for floor in [0.0, 1e-30, 1e-5] {
        let (w1, w2) = (w1.view(), w2.view());
        let points = Points::Nonstationary { w1, w2 };
        let norm = Magnitude::Norm { p: 2.0 };
        let settings = kernels::squared(points, floor, &mask).with_key_weight(norm);
        let got = weights(q.view(), k.view(), &settings).unwrap();
        for j in [0, 1, 3] {
            let want = magnitude(j) / total;
            assert!((got[[0, 0, 0, j]] - want).abs() < 1e-12, "{floor:e}: {got}");
        }
        assert_eq!(got[[0, 0, 1, 2]], 1.0);

        let v = Array4::from_shape_fn((1, 1, 4, 1), |(.., j, _)| j as f64);
        let output = |k: &Array4<f64>| {
            let attended = attend(q.view(), k.view(), v.view(), &settings);
            attended.unwrap().output
        };
        let cotangent = Array4::ones((1, 1, 2, 1));
        let attended = attend(q.view(), k.view(), v.view(), &settings).unwrap();
        assert_eq!(attended.output[[0, 0, 1, 0]], 2.0);
        let got = attend_vjp(&attended, cotangent.view()).unwrap();
        // Along the second axis the kernel stays zero.
        let start: Vec<f64> = (0..4).map(|j| k[[0, 0, j, 1]]).collect();
        let want = finite_difference(&start, |moved| {
            let mut k = k.clone();
            (0..4).for_each(|j| k[[0, 0, j, 1]] = moved[j]);
            output(&k).sum()
        });
        let along: Vec<f64> = (0..4).map(|j| got.k[[0, 0, j, 1]]).collect();
        assert!(relative_error(&along, &want) < 1e-6, "{along:?} {want:?}");
        assert!(got.q.iter().chain(&got.k).all(|x| x.is_finite()));
    }
}
