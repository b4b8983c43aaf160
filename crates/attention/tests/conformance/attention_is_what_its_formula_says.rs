//! Written down once more, pair by pair and without any of the engine's tricks.

use crate::common::*;
use crate::plain::*;
use bochner_attention::{Magnitude, Points, Settings, Similarity, attend, weights};
use ndarray::{Array4, ArrayView1, s};

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

fn similarity(settings: &Settings<f64>, b: usize, m: usize, q: Vector, k: Vector) -> f64 {
    match &settings.similarity {
        Similarity::Rbf => {
            let distance: f64 = q.iter().zip(k).map(|(q, k)| (q - k).powi(2)).sum();
            (-distance / (2.0 * (q.len() as f64).sqrt())).exp()
        }
        Similarity::Squared { points, floor } => kernel(points, b, m, q, k).powi(2) + floor,
    }
}

fn norm_square(x: Vector, p: f64) -> f64 {
    x.iter().map(|x| x.abs().powf(p)).sum::<f64>().powf(2.0 / p)
}

fn exponent(magnitude: Magnitude, q: Vector, k: Vector, pair: u64) -> f64 {
    let d = q.len() as f64;
    match magnitude {
        Magnitude::None => 0.0,
        Magnitude::Norm { p } => norm_square(k, p) / (2.0 * d.sqrt()),
        Magnitude::Released { p, dropout } => {
            let factor: f64 = dropout.map_or(1.0, |dropout| dropout.factor(pair));
            factor * (norm_square(q, p) + norm_square(k, p)) / (2.0 * d.powf(0.25))
        }
    }
}

/// Weights before and after dropout.
fn expected(settings: &Settings<f64>, example: &Example<f64>) -> [Array4<f64>; 2] {
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
            let u = exponent(settings.magnitude, q, k, pair(j));
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

fn check(settings: &Settings<f64>, example: &Example<f64>, label: &str) {
    let [want_weights, dropped] = expected(settings, example);
    let (q, k, v) = (example.q.view(), example.k.view(), example.v.view());
    assert_near(&weights(q, k, settings).unwrap(), &want_weights, label);
    let mut want = Array4::zeros((BATCH, HEADS, example.q.dim().2, VALUE_WIDTH));
    for ((b, m, i, n), want) in want.indexed_iter_mut() {
        *want = dropped
            .slice(s![b, m, i, ..])
            .dot(&v.slice(s![b, m, .., n]));
    }
    assert_near(&attend(q, k, v, settings).unwrap().output, &want, label);
}

fn assert_near(got: &Array4<f64>, want: &Array4<f64>, label: &str) {
    let error = (got - want).iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    assert!(error < 1e-12, "{label}: {error:e}");
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
            let (similarity, magnitude) = (sets.similarity(name), Magnitude::Norm { p: 1.5 });
            let settings = with(similarity, magnitude, &mask, dropout(0.3, "weights"));
            check(&settings, &example, &format!("{name}, mask: {mask_name}"));
        }
    }
}

/// The floor is the weight that is left where a kernel vanishes: the magnitudes decide.
#[test]
fn where_every_similarity_vanishes_the_magnitudes_decide() {
    // One frequency, and keys a quarter of a wave from the query: f = cos(pi/2).
    let w = Array4::from_elem((1, 1, 1, 1), std::f64::consts::FRAC_PI_2);
    let (q, keys) = (Array4::zeros((1, 1, 2, 1)), [1.0, -3.0, 1.0, 5.0]);
    let k = Array4::from_shape_vec((1, 1, 4, 1), keys.to_vec()).unwrap();
    let matrix = ndarray::array![[true, true, false, true], [false, false, true, false]];
    let mask = bochner_attention::Mask::none().with_matrix(matrix.view());
    let magnitudes = keys.map(|k: f64| (k * k / 2.0).exp());
    let want = |j: usize| magnitudes[j] / (magnitudes[0] + magnitudes[1] + magnitudes[3]);
    for floor in [0.0, 1e-30, 1e-5] {
        let points = Points::Stationary { w: w.view() };
        let similarity = Similarity::Squared { points, floor };
        let settings = with(similarity, Magnitude::Norm { p: 2.0 }, &mask, None);
        let got = weights(q.view(), k.view(), &settings).unwrap();
        // cos(pi/2) is not exactly zero in floating point; its square is below 1e-32.
        for j in [0, 1, 3] {
            assert!(
                (got[[0, 0, 0, j]] - want(j)).abs() < 0.1,
                "{floor:e}: {got}"
            );
        }
        assert_eq!(got[[0, 0, 1, 2]], 1.0);
    }
}
