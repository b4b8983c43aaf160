//! Properties of bipolar attention alone: exact exponents, surrogate slopes, integers, and its paper's theorems.

use crate::conformance::plain::{attend, attend_vjp, weights};
use bochner_attention::{
    Bias, Error, Mask, Settings,
    fixed_point::{FRACTION_BITS, attend_by_shifts, from_fixed_point, ternary, to_fixed_point},
    kernels,
    shiftmax::{shiftmax, shiftmax_vjp},
};
use bochner_numerics::check::random;
use bochner_numerics::{Real, Seed, relative_error};
use ndarray::{Array2, Array4, array, s};
use rand::Rng;
use std::f64::consts::LN_2;

/// Masks of every kind for two examples and heads, four queries and six keys.
fn masks() -> [Mask; 5] {
    let matrix = Array2::from_shape_fn((4, 6), |(i, j)| i != 1 && (3 * i + j) % 4 != 2);
    let matrices = Array4::from_shape_fn((2, 2, 4, 6), |(b, m, i, j)| {
        i != 1 && (b + 2 * m + 3 * i + j) % 4 != 2
    });
    [
        Mask::none(),
        Mask::none().with_causality(),
        Mask::none().with_key_lengths(vec![4, 0]),
        Mask::none().with_matrix(matrix.view()),
        Mask::none().with_matrices(matrices.view()),
    ]
}

/// A query of ones, and keys whose products with it are these.
fn with_scores<T: Real>(scores: &[i64], width: usize) -> [Array4<T>; 2] {
    let key = |(_, _, j, n): (usize, usize, usize, usize)| {
        let score = scores[j];
        match (n as i64) < score.abs() {
            true => T::of(score.signum() as f64),
            false => T::zero(),
        }
    };
    let keys = Array4::from_shape_fn((1, 1, scores.len(), width), key);
    [Array4::ones((1, 1, 1, width)), keys]
}

/// The sums of weights that rounding loses decide the exponent, wherever blocks of keys end.
fn small_terms_count<T: Real>() {
    let carry: Vec<i64> = (-60..60).rev().collect();
    let far = |n: usize, last: &[i64]| [&[64][..], &vec![-64; n], last].concat();
    for (scores, largest_weight) in [
        (vec![64], 1.0),
        (vec![64, -64], 0.5),
        (far(700, &[]), 0.5),
        (vec![64, 64], 0.5),
        (far(700, &[64]), 0.25),
        // One less than twice the largest, and exactly that, and more.
        (carry.clone(), 0.5),
        ([&carry[..], &[-60]].concat(), 0.5),
        ([&carry[..], &[-60, -64]].concat(), 0.25),
        ([&carry[..], &vec![-61; 1100]].concat(), 0.25),
    ] {
        let [q, k] = with_scores::<T>(&scores, 64);
        let mask = Mask::none();
        let settings = kernels::bipolar(0.5, 1.0, &mask);
        let v = Array4::from_shape_fn((1, 1, scores.len(), 1), |(.., j, _)| {
            T::of(f64::from(u8::from(j == 0)))
        });
        let shown = weights(q.view(), k.view(), &settings).unwrap();
        assert_eq!(
            shown[[0, 0, 0, 0]],
            T::of(largest_weight),
            "{}",
            scores.len()
        );
        let output = attend(q.view(), k.view(), v.view(), &settings)
            .unwrap()
            .output;
        assert_eq!(
            output[[0, 0, 0, 0]],
            T::of(largest_weight),
            "{}",
            scores.len()
        );
        // The weights are those of the function of rows, to the bit.
        let x = Array2::from_shape_fn((1, scores.len()), |(_, j)| T::of(scores[j] as f64));
        let rows = shiftmax(x.view(), None).unwrap();
        let smallest = T::min_positive_value();
        let normal = rows
            .weights
            .mapv(|w| if w < smallest { T::zero() } else { w });
        assert_eq!(shown.slice(s![0, 0, .., ..]), normal);
    }
}

#[test]
fn no_term_is_too_small_to_count_in_single_precision() {
    small_terms_count::<f32>();
}

#[test]
fn no_term_is_too_small_to_count_in_double_precision() {
    small_terms_count::<f64>();
}

/// The sum of powers of two as a fraction of the largest: more than a half, at most one.
#[test]
fn rows_sum_to_more_than_a_half_and_at_most_one() {
    let mut stream = Seed::new(62).stream("rows");
    for _ in 0..2000 {
        let n = stream.r#gen_range(1..64);
        let range = [2_i64, 12, 60][stream.r#gen_range(0..3)];
        let scores: Vec<i64> = (0..n).map(|_| stream.r#gen_range(-range..=range)).collect();
        let x = Array2::from_shape_fn((1, n), |(_, j)| scores[j] as f64);
        let rows = shiftmax(x.view(), None).unwrap();
        let gamma = rows.gamma[0];
        // In units of the smallest possible weight.
        let sum: u128 = scores.iter().map(|x| 1_u128 << (x + 60)).sum();
        let one = 1_u128 << (gamma + 60).max(0);
        assert!(
            gamma >= -60 && sum <= one && 2 * sum > one,
            "{scores:?}: {gamma}"
        );
        for (&x, &w) in scores.iter().zip(&rows.weights) {
            assert_eq!(w, ((x - gamma) as f64).exp2());
        }
        // Whole shifts of all scores change nothing but the exponent.
        let moved = shiftmax((&x + 1000.0).view(), None).unwrap();
        assert_eq!(
            (moved.weights, moved.gamma[0]),
            (rows.weights, gamma + 1000)
        );
    }
}

#[test]
fn the_gradient_of_rows_is_straight_through_the_ceiling() {
    let x = array![[3.0, 1.0, -2.0, 3.0], [0.0, 0.0, 5.0, 7.0]];
    let mask = array![[true, true, true, false], [false; 4]];
    let g = array![[0.3, -1.2, 0.7, 9.0], [1.0, 2.0, 3.0, 4.0]];
    let rows = shiftmax(x.view(), Some(mask.view())).unwrap();
    assert_eq!(rows.gamma[1], 0);
    assert_eq!(rows.weights.row(1).sum(), 0.0);
    let got = shiftmax_vjp(x.view(), Some(mask.view()), g.view()).unwrap();
    let mut hidden = g.clone();
    hidden
        .iter_mut()
        .zip(&mask)
        .filter(|(_, kept)| !**kept)
        .for_each(|(g, _)| *g = f64::NAN);
    assert_eq!(
        shiftmax_vjp(x.view(), Some(mask.view()), hidden.view()).unwrap(),
        got
    );
    let s = rows.weights.row(0);
    for j in 0..4 {
        let p = s[j] / s.sum();
        let want: f64 = (0..4)
            .map(|i| LN_2 * g[[0, i]] * s[i] * (f64::from(u8::from(i == j)) - p))
            .sum();
        assert!((got[[0, j]] - want).abs() < 1e-15, "{j}");
        assert_eq!(got[[1, j]], 0.0);
    }
}

/// The gradient of the ternary numbers, from the formula, times the surrogate's slope.
#[test]
fn slopes_are_those_of_the_window() {
    let [q, k, v] =
        [4, 6, 6].map(|time| random::<f64, _>([2, 2, time, 8], &format!("stream {time}")));
    let g = random([2, 2, 4, 8], "cotangent");
    let (threshold, width) = (0.5, 0.8);
    let spike = |x: f64| {
        if x.abs() >= threshold {
            x.signum()
        } else {
            0.0
        }
    };
    let slope = |x: f64| {
        let is_near = (x.abs() - threshold).abs() < width / 2.0;
        if is_near { 1.0 / width } else { 0.0 }
    };
    for mask in masks() {
        let settings = kernels::bipolar(threshold, width, &mask);
        let attended = attend(q.view(), k.view(), v.view(), &settings).unwrap();
        let got = attend_vjp(&attended, g.view()).unwrap();
        let shown = weights(q.view(), k.view(), &settings).unwrap();
        let [mut dq, mut dk] = [&q, &k].map(|x| Array4::<f64>::zeros(x.raw_dim()));
        for (b, m, i) in ndarray::indices((2, 2, 4)) {
            let row = shown.slice(s![b, m, i, ..]);
            let product = |j: usize| g.slice(s![b, m, i, ..]).dot(&v.slice(s![b, m, j, ..]));
            let mean: f64 = (0..6).map(|j| row[j] * product(j)).sum::<f64>() / row.sum().max(0.1);
            for j in 0..6 {
                let dx = LN_2 * row[j] * (product(j) - mean);
                for n in 0..8 {
                    let (at, to) = (q[[b, m, i, n]], k[[b, m, j, n]]);
                    dq[[b, m, i, n]] += dx * spike(to) * slope(at);
                    dk[[b, m, j, n]] += dx * spike(at) * slope(to);
                }
            }
        }
        for (got, want) in [(&got.q, &dq), (&got.k, &dk)] {
            let flat = |x: &Array4<f64>| x.iter().copied().collect::<Vec<_>>();
            assert!(dq.iter().any(|x| x.abs() > 0.01));
            assert!(relative_error(&flat(got), &flat(want)) < 1e-12, "{mask:?}");
        }
    }
}

/// A bias multiplies weights, and their rounded sum says what a row is divided by.
#[test]
fn a_bias_multiplies_the_powers() {
    let [q, k] = [4, 6].map(|time| random::<f64, _>([2, 2, time, 8], &format!("stream {time}")));
    let bias: Array4<f64> = random([1, 2, 4, 6], "bias");
    let mask = Mask::none();
    let plain = kernels::bipolar(0.5, 1.0, &mask);
    let biased = Settings {
        bias: Some(Bias::fixed(bias.view()).unwrap()),
        ..plain.clone()
    };
    let without = weights(q.view(), k.view(), &plain).unwrap();
    let with = weights(q.view(), k.view(), &biased).unwrap();
    for (b, m, i) in ndarray::indices((2, 2, 4)) {
        let want = &without.slice(s![b, m, i, ..]) * &bias.slice(s![0, m, i, ..]).mapv(f64::exp);
        let want = &want / want.sum().log2().ceil().exp2();
        let got = with.slice(s![b, m, i, ..]);
        assert!(
            (&got - &want).iter().all(|x| x.abs() < 1e-14),
            "{got} {want}"
        );
        assert!(got.sum() > 0.5 && got.sum() <= 1.0);
    }
}

/// In both precisions, where the rounded sums of many rows are a power of two and the true sums are not.
#[test]
fn a_bias_that_adds_nothing_changes_nothing() {
    fn check<T: Real>() {
        let x = random([1, 2, 70, 64], "queries and keys").mapv(T::of);
        let mut hiding = Array4::<T>::zeros((1, 1, 70, 70));
        hiding.slice_mut(s![.., .., .., 3]).fill(T::neg_infinity());
        let all = Mask::none();
        let hidden = Mask::none().with_matrices(hiding.mapv(|b| b == T::zero()).view());
        let table = Array2::<T>::zeros((2, 139));
        let zeros = Bias::relative(table.view()).unwrap();
        let hiding = Bias::fixed(hiding.view()).unwrap();
        for (bias, mask) in [(zeros, &all), (hiding, &hidden)] {
            let want = weights(x.view(), x.view(), &kernels::bipolar(0.5, 1.0, mask)).unwrap();
            let biased = Settings {
                bias: Some(bias),
                ..kernels::bipolar(0.5, 1.0, &all)
            };
            assert_eq!(weights(x.view(), x.view(), &biased).unwrap(), want);
        }
    }
    check::<f32>();
    check::<f64>();
}

/// A query that keeps one key gives it all its weight, whatever hides the others.
fn one_key_alone_has_all_the_weight<T: Real>() {
    let x = random([1, 2, 5, 40], "queries and keys").mapv(T::of);
    let own = Array4::from_shape_fn((1, 1, 5, 5), |(.., i, j)| i == j);
    let [as_mask, too_low_for_weights] = [f64::NEG_INFINITY, -1e4].map(|lowest| {
        let bias = own.mapv(|own| T::of(if own { 0.0 } else { lowest }));
        Some(Bias::fixed(bias.view()).unwrap())
    });
    for (mask, bias) in [
        (Mask::none().with_packed(&[1; 5]), None),
        (Mask::none().with_matrices(own.view()), None),
        (Mask::none(), as_mask),
        (Mask::none(), too_low_for_weights),
    ] {
        let settings = Settings {
            bias,
            ..kernels::bipolar(0.5, 1.0, &mask)
        };
        let shown = weights(x.view(), x.view(), &settings).unwrap();
        for ((.., i, j), &weight) in shown.indexed_iter() {
            let want = if i == j { T::one() } else { T::zero() };
            assert_eq!(weight, want, "{mask:?}: {i}, {j}");
        }
    }
}

#[test]
fn one_key_alone_has_all_the_weight_in_either_precision() {
    one_key_alone_has_all_the_weight::<f32>();
    one_key_alone_has_all_the_weight::<f64>();
}

/// A shift rounds down by less than a unit a key.
#[test]
fn shifts_are_within_a_unit_a_key() {
    // More columns than a word has bits.
    for (width, queries, keys) in [(5, 4, 6), (64, 4, 6), (70, 40, 300)] {
        let [q, k] =
            [queries, keys].map(|time| random::<f64, _>([2, 2, time, width], &format!("{time}")));
        let v: Array4<f64> = random([2, 2, keys, 3], "values");
        let values = to_fixed_point(v.view()).unwrap();
        let exact: Array4<f64> = from_fixed_point(values.view());
        assert!((&exact - &v).iter().all(|x| x.abs() <= 0.5_f64.powi(13)));
        let all = masks();
        for mask in if keys == 6 { &all[..] } else { &all[..2] } {
            let settings = kernels::bipolar(0.5, 1.0, mask);
            let attended = attend(q.view(), k.view(), exact.view(), &settings).unwrap();
            let [q, k] = [&q, &k].map(|x| ternary(x.view(), 0.5).unwrap());
            let shifted = attend_by_shifts(q.view(), k.view(), values.view(), mask).unwrap();
            let shifted: Array4<f64> = from_fixed_point(shifted.view());
            let unit = 0.5_f64.powi(FRACTION_BITS as i32);
            for (at, &got) in shifted.indexed_iter() {
                let (b, m, i, n) = at;
                let kept = (0..keys).filter(|&j| mask.keeps([b, m, i, j], [queries, keys]));
                let below = attended.output[[b, m, i, n]] - got;
                let bound = kept.count() as f64 * unit;
                assert!(below >= -1e-12 && below <= bound, "{at:?}: {below} {bound}");
            }
            assert!(shifted.iter().any(|&x| x.abs() > 0.1));
        }
    }
}

#[test]
fn what_integers_cannot_hold_is_named() {
    let x = Array4::<f64>::ones((1, 1, 2, 3));
    let names = |got: Error, name: &str| {
        let is_named = matches!(&got, Error::Argument(error) if error.name() == name);
        assert!(is_named, "{name}: {got}");
    };
    names(
        to_fixed_point((&x * 524_288.0).view()).unwrap_err(),
        "values",
    );
    let lowest = to_fixed_point((&x * -524_288.0).view()).unwrap();
    assert!(lowest.iter().all(|&x| x == i32::MIN));
    names(
        to_fixed_point((&x * f64::NAN).view()).unwrap_err(),
        "values",
    );
    names(ternary((&x * f64::INFINITY).view(), 0.5).unwrap_err(), "x");
    names(ternary(x.view(), -0.5).unwrap_err(), "threshold");
    let (spikes, values) = (
        ternary(x.view(), 0.5).unwrap(),
        to_fixed_point(x.view()).unwrap(),
    );
    let attend = |q: &Array4<i8>, k: &Array4<i8>, v: &Array4<i32>| {
        attend_by_shifts(q.view(), k.view(), v.view(), &Mask::none()).unwrap_err()
    };
    names(attend(&(&spikes * 2), &spikes, &values), "q");
    names(attend(&spikes, &(&spikes * -2), &values), "k");
    let short = values.slice(s![.., .., ..1, ..]).to_owned();
    names(attend(&spikes, &spikes, &short), "v");
    let mask = Mask::none().with_key_lengths(vec![3]);
    let got = attend_by_shifts(spikes.view(), spikes.view(), values.view(), &mask);
    assert!(matches!(got, Err(Error::Mask { .. })));
    for x in [0.5, f64::NAN, f64::INFINITY, 1e300] {
        names(shiftmax(array![[x]].view(), None).unwrap_err(), "x");
        assert!(shiftmax(array![[x]].view(), Some(array![[false]].view())).is_ok());
    }
    let wrong = array![[true, true]];
    names(
        shiftmax(array![[1.0]].view(), Some(wrong.view())).unwrap_err(),
        "mask",
    );
    let got = shiftmax_vjp(array![[1.0]].view(), None, array![[1.0, 2.0]].view());
    names(got.unwrap_err(), "cotangent");
}

/// The extremes of 32 bits survive, in either direction.
#[test]
fn sums_stay_in_their_range() {
    let spikes = Array4::<i8>::zeros((1, 1, 3, 2));
    for end in [i32::MIN, i32::MAX] {
        let values = Array4::from_elem((1, 1, 3, 2), end);
        let output = attend_by_shifts(spikes.view(), spikes.view(), values.view(), &Mask::none());
        // Three equal weights of a quarter.
        let want = 3 * (i64::from(end) >> 2);
        assert!(output.unwrap().iter().all(|&x| i64::from(x) == want));
    }
}

/// Weights of a half down to 2^-31 leave room for many smaller weights. Each of these takes a unit from a negative
/// value, so that the sum saturates at the smallest 32-bit integer. They add nothing to a sum of positive values.
#[test]
fn sums_of_weights_below_a_unit_stay_in_their_range() {
    let scores: Vec<i64> = (-10..=20).rev().chain([-19; 100]).collect();
    let [q, k] = with_scores::<f64>(&scores, 64).map(|x| ternary(x.view(), 0.5).unwrap());
    for (value, want) in [
        (i32::MIN, i32::MIN),
        (i32::MAX, (1..31).map(|shift| i32::MAX >> shift).sum()),
    ] {
        let values = Array4::from_elem((1, 1, scores.len(), 1), value);
        let output = attend_by_shifts(q.view(), k.view(), values.view(), &Mask::none()).unwrap();
        assert_eq!(output[[0, 0, 0, 0]], want);
    }
}
