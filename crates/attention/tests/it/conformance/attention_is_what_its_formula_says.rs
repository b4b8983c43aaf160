//! Written down once more, pair by pair and without any of the engine's tricks.

use crate::conformance::common::*;
use crate::conformance::plain::*;
use bochner_attention::{IkanDirect, Magnitude, Pass, Points, Preset, attend, attend_vjp, weights};
use bochner_numerics::{DropoutMask, finite_difference, relative_error};
use ndarray::{Array4, ArrayView1, Axis, s};

type Vector<'a> = ArrayView1<'a, f64>;

/// $f_S = \frac1R \sum_r \cos(w_r \cdot (q - k))$, and $f_{NS}$ with its four cosines.
fn kernel(points: &Points<f64>, b: usize, m: usize, q: Vector, k: Vector) -> f64 {
    let of = |w: &ndarray::ArrayView4<f64>| {
        let set = if w.dim().0 == 1 { 0 } else { b };
        w.slice(s![set, m, .., ..]).to_owned()
    };
    match points {
        Points::Stationary { w } => {
            let w = of(w);
            let cosines = w.rows().into_iter().map(|w| (w.dot(&q) - w.dot(&k)).cos());
            cosines.sum::<f64>() / w.nrows() as f64
        }
        Points::Nonstationary { w1, w2 } => {
            let both = [of(w1), of(w2)];
            let mut sum = 0.0;
            for a in &both {
                for b in &both {
                    for (a, b) in a.rows().into_iter().zip(b.rows()) {
                        sum += (a.dot(&q) - b.dot(&k)).cos();
                    }
                }
            }
            sum / (4 * both[0].nrows()) as f64
        }
    }
}

fn similarity(settings: &Plain<f64>, b: usize, m: usize, q: Vector, k: Vector) -> f64 {
    let root = (q.len() as f64).sqrt();
    let distance: f64 = q.iter().zip(k).map(|(q, k)| (q - k).powi(2)).sum();
    match &settings.similarity {
        Similarity::Softmax => (q.dot(&k) / root).exp(),
        Similarity::Rbf => (-distance / (2.0 * root)).exp(),
        Similarity::Expsin { period } => {
            let sine = (std::f64::consts::PI * distance.sqrt() / period).sin();
            (-2.0 * sine.powi(2) / root).exp()
        }
        Similarity::Linear => (q.dot(&k) / root).powi(2),
        Similarity::Squared { points, floor } => kernel(points, b, m, q, k).powi(2) + floor,
    }
}

fn norm_square(x: Vector, p: f64) -> f64 {
    x.iter().map(|x| x.abs().powf(p)).sum::<f64>().powf(2.0 / p)
}

fn exponent(magnitude: Magnitude, q: Vector, k: Vector, factor: f64) -> f64 {
    let d = q.len() as f64;
    match magnitude {
        Magnitude::None => 0.0,
        Magnitude::Norm { p } => norm_square(k, p) / (2.0 * d.sqrt()),
        Magnitude::Released { p } => {
            factor * (norm_square(q, p) + norm_square(k, p)) / (2.0 * d.powf(0.25))
        }
    }
}

/// Weights before and after dropout, with another dropout on the magnitudes of pairs.
fn expected(
    settings: &Plain<f64>,
    on_magnitudes: Option<DropoutMask>,
    example: &Example<f64>,
) -> [Array4<f64>; 2] {
    let (batch, heads, queries, _) = example.q.dim();
    let keys = example.k.dim().2;
    let mut weights = Array4::<f64>::zeros((batch, heads, queries, keys));
    let mut dropped = weights.clone();
    for ((b, m, i), mut row) in ndarray::indices((batch, heads, queries))
        .into_iter()
        .zip(weights.rows_mut())
    {
        let pair = |j: usize| (((b * heads + m) * queries + i) * keys + j) as u64;
        let kept = (0..keys).filter(|&j| settings.mask.keeps(b, i, j, queries, keys));
        for j in kept {
            let (q, k) = (
                example.q.slice(s![b, m, i, ..]),
                example.k.slice(s![b, m, j, ..]),
            );
            let factor = on_magnitudes.map_or(1.0, |mask| mask.factor(pair(j)));
            let u = exponent(settings.magnitude, q, k, factor);
            row[j] = similarity(settings, b, m, q, k) * u.exp();
        }
        let total = row.sum();
        if total > 0.0 {
            row /= total;
        }
        for j in 0..keys {
            let factor: f64 = settings
                .dropout
                .map_or(1.0, |dropout| dropout.factor(pair(j)));
            dropped[[b, m, i, j]] = row[j] * factor;
        }
    }
    [weights, dropped]
}

fn weighted(weights: &Array4<f64>, v: &Array4<f64>) -> Array4<f64> {
    let (batch, heads, queries, _) = weights.dim();
    Array4::from_shape_fn((batch, heads, queries, v.dim().3), |(b, m, i, n)| {
        let weights = weights.slice(s![b, m, i, ..]);
        weights.dot(&v.slice(s![b, m, .., n]))
    })
}

fn check(settings: &Plain<f64>, example: &Example<f64>, label: &str) {
    let [want, dropped] = expected(settings, None, example);
    let (q, k, v) = (example.q.view(), example.k.view(), example.v.view());
    assert_near(&weights(q, k, &settings.settings()).unwrap(), &want, label);
    let want = weighted(&dropped, &example.v);
    assert_near(
        &attend(q, k, v, &settings.settings()).unwrap().output,
        &want,
        label,
    );
}

/// Weights and outputs of a mechanism, from the points that it shows.
pub(crate) fn weights_follow_the_formula(case: &Case<f64>) {
    // One draw of several is shown, and training takes one.
    let passes: &[Pass] = match case.is_averaged() {
        true => &[TRAINING],
        false => &[EVALUATION, TRAINING],
    };
    case.with_every_mask(5, 6, |case, example, mask, label| {
        for pass in passes {
            let inputs = example.inputs(mask);
            let shown = case.mechanism().inspect(&inputs, &case.parameters, pass);
            let shown = shown.unwrap();
            let Formula { kernel, magnitude } = case.formula();
            let similarity = match (kernel, &shown.points) {
                (Kernel::Squared { floor }, Some((w1, w2))) => {
                    let (w1, w2) = (w1.view(), w2.view());
                    let points = Points::Nonstationary { w1, w2 };
                    Similarity::Squared { points, floor }
                }
                (Kernel::Expsin { period }, _) => Similarity::Expsin { period },
                (Kernel::Linear, _) => Similarity::Linear,
                _ => Similarity::Rbf,
            };
            let dropout = pass.weight_dropout().unwrap();
            let settings = with(similarity, magnitude, mask, dropout);
            let on_magnitudes = on_magnitudes(magnitude, pass);
            let [want, dropped] = expected(&settings, on_magnitudes, example);
            assert_near(&shown.weights, &want, label);
            let want = weighted(&dropped, &example.v);
            assert_near(&case.output(example, mask, pass), &want, label);
        }
    });
}

/// What the released code's training multiplies the magnitudes of pairs with.
fn on_magnitudes(magnitude: Magnitude, pass: &Pass) -> Option<DropoutMask> {
    let trained = matches!(pass, Pass::Training { .. });
    let seed = pass.seed().child("magnitude dropout");
    let mask = DropoutMask::new(0.1, seed).unwrap();
    (trained && matches!(magnitude, Magnitude::Released { .. })).then_some(mask)
}

fn assert_near(got: &Array4<f64>, want: &Array4<f64>, label: &str) {
    let error = (got - want).iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    assert!(error < 1e-12, "{label}: {error:e}");
}

#[test]
fn for_every_mechanism() {
    cases().iter().for_each(weights_follow_the_formula);
}

#[test]
fn for_every_setting() {
    for (queries, keys) in [(5, 6), (6, 4)] {
        for_all_settings(queries, keys, check);
    }
}

#[test]
fn across_blocks() {
    let (queries, keys) = (130, 515);
    let (example, sets) = (Example::new(queries, keys), PointSets::new());
    for name in SIMILARITIES {
        for (mask_name, mask) in masks(queries, keys) {
            for magnitude in [Magnitude::Norm { p: 1.5 }, Magnitude::Released { p: 1.5 }] {
                let similarity = sets.similarity(name);
                let settings = with(similarity, magnitude, &mask, dropout(0.3, "weights"));
                let label = format!("{name}, {magnitude:?}, mask: {mask_name}");
                check(&settings, &example, &label);
            }
        }
    }
}

/// One key is so loud that beside it all others vanish, except where its magnitude is dropped.
#[test]
fn a_loud_key_counts_for_little_where_it_is_dropped() {
    let (queries, keys, loud) = (60, 3, 30.0);
    let released = IkanDirect {
        preset: Preset::Released,
        points: 4,
        ..IkanDirect::default()
    };
    let case = Case::<f64>::of(released.into());
    let mut example = Example::new(queries, keys);
    example.k.slice_mut(s![.., .., 1, ..]).fill(loud);
    let mask = bochner_attention::Mask::none();
    let inputs = example.inputs(&mask);
    let shown = (case.mechanism()).inspect(&inputs, &case.parameters, &TRAINING);
    let of_loud = shown.unwrap().weights.index_axis_move(Axis(3), 1);
    let factors = on_magnitudes(Magnitude::Released { p: 2.0 }, &TRAINING).unwrap();
    let mut dropped = 0;
    for (row, &weight) in of_loud.iter().enumerate() {
        if factors.keeps((row * keys + 1) as u64) {
            assert!((weight - 1.0).abs() < 1e-12, "row {row}: {weight}");
        } else {
            dropped += 1;
            assert!(weight < 0.9, "row {row}: {weight}");
        }
    }
    assert!(dropped > 10);
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
        let similarity = Similarity::Squared { points, floor };
        let settings = with(similarity, Magnitude::Norm { p: 2.0 }, &mask, None);
        let got = weights(q.view(), k.view(), &settings.settings()).unwrap();
        for j in [0, 1, 3] {
            let want = magnitude(j) / total;
            assert!((got[[0, 0, 0, j]] - want).abs() < 1e-12, "{floor:e}: {got}");
        }
        assert_eq!(got[[0, 0, 1, 2]], 1.0);

        let v = Array4::from_shape_fn((1, 1, 4, 1), |(.., j, _)| j as f64);
        let settings = settings.settings();
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
