//! Products of spikes on bits: those of the numbers, wherever words, blocks, heads and windows end.

use crate::names;
use bochner_attention::{
    Blocks, Form, Mask, Settings, attend, attend_by_shifts, attend_vjp, ternary, to_fixed_point,
    weights,
};
use bochner_numerics::check::random;
use bochner_numerics::operations::count;
use bochner_numerics::{Real, relative_error};
use ndarray::{Array2, Array4, Axis, concatenate, s};
use std::f64::consts::LN_2;
use std::ops::Range;

const QUERIES: usize = 7;
const KEYS: usize = 70;
const THRESHOLD: f64 = 0.7;
const WINDOW: f64 = 0.5;

/// Masks under which rows begin at the first key or at later ones, or differ from head to head.
fn masks() -> Vec<Mask> {
    let matrices = Array4::from_shape_fn((1, 2, QUERIES, KEYS), |(_, m, i, j)| {
        i != 1 && (5 * m + 7 * i + 3 * j) % 4 != 1
    });
    vec![
        Mask::none(),
        Mask::none().with_key_lengths(vec![45]),
        Mask::none().with_causality(),
        Mask::none().with_window(12, 3).unwrap(),
        Mask::none().with_matrices(matrices.view()),
    ]
}

fn spikes(x: &Array2<f64>) -> Array2<f64> {
    x.mapv(|x| {
        if x.abs() >= THRESHOLD {
            x.signum()
        } else {
            0.0
        }
    })
}

fn slopes(x: &Array2<f64>) -> Array2<f64> {
    x.mapv(|x| {
        let is_near = (x.abs() - THRESHOLD).abs() < WINDOW / 2.0;
        if is_near { 1.0 / WINDOW } else { 0.0 }
    })
}

/// The weights of a head by their formula.
fn shiftmax(scores: &Array2<f64>, keeps: impl Fn(usize, usize) -> bool) -> Array2<f64> {
    let kept = |(i, j): (usize, usize)| {
        if keeps(i, j) {
            scores[[i, j]].exp2()
        } else {
            0.0
        }
    };
    let mut weights = Array2::from_shape_fn(scores.dim(), kept);
    for mut row in weights.rows_mut() {
        if row.sum() > 0.0 {
            row /= row.sum().log2().ceil().exp2();
        }
    }
    weights
}

/// Two heads of queries read one head of keys, a few queries and a panel of keys at a time.
#[test]
fn weights_and_gradients_are_their_formula_across_words_blocks_and_heads() {
    for width in [8, 63, 64, 65, 130] {
        let q: Array4<f64> = random([1, 2, QUERIES, width], "queries");
        let k: Array4<f64> = random([1, 1, KEYS, width], "keys");
        let v: Array4<f64> = random([1, 1, KEYS, 3], "values");
        let g: Array4<f64> = random([1, 2, QUERIES, 3], "cotangent");
        for mask in masks() {
            let blocks = Blocks {
                queries: 3,
                keys: 32,
            };
            let settings = Settings {
                form: Form::Blocked(blocks),
                ..Settings::bipolar(THRESHOLD, WINDOW, &mask)
            };
            let attended = attend(q.view(), k.view(), v.view(), &settings).unwrap();
            let shown = weights(q.view(), k.view(), &settings).unwrap();
            let got = attend_vjp(&attended, g.view()).unwrap();
            let [keys, values] = [&k, &v].map(|x| x.slice(s![0, 0, .., ..]).to_owned());
            let mut dk = Array2::<f64>::zeros((KEYS, width));
            let close = |got: &[f64], want: &Array2<f64>, what: &str| {
                let error = relative_error(got, want.as_standard_layout().as_slice().unwrap());
                assert!(
                    error < 1e-12,
                    "{what} of {width} columns, {mask:?}: {error:e}"
                );
            };
            for m in 0..2 {
                let [queries, cotangent] = [&q, &g].map(|x| x.slice(s![0, m, .., ..]).to_owned());
                let scores = spikes(&queries).dot(&spikes(&keys).t());
                let keeps = |i, j| mask.keeps([0, m, i, j], [QUERIES, KEYS]);
                let want = shiftmax(&scores, keeps);
                let of_head = |x: &Array4<f64>| x.slice(s![0, m, .., ..]).iter().copied().collect();
                let flat: [Vec<f64>; 3] = [&shown, &attended.output, &got.q].map(of_head);
                close(&flat[0], &want, "weights");
                close(&flat[1], &want.dot(&values), "outputs");
                let products = cotangent.dot(&values.t());
                let sums = want.sum_axis(Axis(1)).mapv(|sum| sum.max(0.1));
                let means = (&want * &products).sum_axis(Axis(1)) / sums;
                let dx = (products - means.insert_axis(Axis(1))) * &want * LN_2;
                close(&flat[2], &(dx.dot(&spikes(&keys)) * slopes(&queries)), "dq");
                dk += &(dx.t().dot(&spikes(&queries)) * slopes(&keys));
            }
            close(got.k.as_slice().unwrap(), &dk, "dk");
        }
    }
}

/// Sequences in one row, more columns than a word has bits and more keys than a panel, are each alone.
#[test]
fn packed_sequences_are_each_alone() {
    let lengths = [20, 45, 5];
    let [q, k, v, g] = ["q", "k", "v", "g"].map(|name| random::<f64, _>([1, 2, KEYS, 70], name));
    let packed = Mask::none().with_packed(&lengths);
    let results = |range: Range<usize>, mask: &Mask| {
        let at = s![.., .., range, ..];
        let [q, k, v, g] = [&q, &k, &v, &g].map(|x| x.slice(at).to_owned());
        let settings = Settings::bipolar(THRESHOLD, WINDOW, mask);
        let attended = attend(q.view(), k.view(), v.view(), &settings).unwrap();
        let pulled = attend_vjp(&attended, g.view()).unwrap();
        [attended.output, pulled.q, pulled.k, pulled.v]
    };
    let got = results(0..KEYS, &packed);
    let mut start = 0;
    for length in lengths {
        let range = start..start + length;
        let want = results(range.clone(), &Mask::none());
        for (got, want) in got.iter().zip(&want) {
            let got = got.slice(s![.., .., range.clone(), ..]);
            let off = (&got - want).fold(0.0, |most: f64, x| most.max(x.abs()));
            assert!(off < 1e-12, "{range:?}: {off:e}");
        }
        start += length;
    }
}

/// In whole numbers each query reads the keys that its mask keeps, wherever its range begins: to the bit.
#[test]
fn shifts_read_the_keys_that_a_mask_keeps() {
    let q: Array4<f64> = random([1, 2, QUERIES, 70], "queries");
    let k: Array4<f64> = random([1, 2, KEYS, 70], "keys");
    let v: Array4<f64> = random([1, 2, KEYS, 3], "values");
    let values = to_fixed_point(v.view()).unwrap();
    let [queries, keys] = [&q, &k].map(|x| ternary(x.view(), THRESHOLD).unwrap());
    let mut all = masks();
    all.push(all[4].clone().with_window(12, 3).unwrap());
    for mask in all {
        let got = attend_by_shifts(queries.view(), keys.view(), values.view(), &mask).unwrap();
        for m in 0..2 {
            let [q, k] = [&q, &k].map(|x| spikes(&x.slice(s![0, m, .., ..]).to_owned()));
            let keeps = |i, j| mask.keeps([0, m, i, j], [QUERIES, KEYS]);
            let weights = shiftmax(&q.dot(&k.t()), keeps);
            for (i, n) in ndarray::indices((QUERIES, 3)) {
                let kept = (0..KEYS).filter(|&j| weights[[i, j]] > 0.0);
                let shifted = kept.map(|j| {
                    let shift = -weights[[i, j]].log2();
                    values[[0, m, j, n]] >> shift.min(31.0) as u32
                });
                let want: i32 = shifted.sum();
                assert_eq!(got[[0, m, i, n]], want, "{mask:?}: {m}, {i}");
            }
        }
    }
}

/// What is not a number has no bits: a query of it has no output, and a key of it takes that of the rows that keep it.
fn what_is_no_number_stays_with_its_pairs<T: Real>() {
    let [q, k, v] = ["q", "k", "v"].map(|name| random::<T, _>([1, 2, 6, 70], name));
    let matrix = Array2::from_shape_fn((6, 6), |(i, j)| j != 2 || i == 4);
    let mask = Mask::none().with_matrix(matrix.view());
    let settings = Settings::bipolar(0.5, 1.0, &mask);
    let output = |q: &Array4<T>, k: &Array4<T>| {
        attend(q.view(), k.view(), v.view(), &settings)
            .unwrap()
            .output
    };
    let want = output(&q, &k);
    let with_nan = |x: &Array4<T>, at: usize| {
        let mut x = x.clone();
        x[[0, 1, at, 66]] = T::nan();
        x
    };
    for (got, lost) in [
        (output(&with_nan(&q, 3), &k), 3),
        (output(&q, &with_nan(&k, 2)), 4),
    ] {
        for ((_, m, i, n), &x) in got.indexed_iter() {
            match (m, i) == (1, lost) {
                true => assert!(x.is_nan(), "{lost}: {m}, {i}: {x}"),
                false => assert_eq!(x, want[[0, m, i, n]], "{lost}: {m}, {i}"),
            }
        }
    }
}

#[test]
fn what_is_no_number_stays_with_its_pairs_in_either_precision() {
    what_is_no_number_stays_with_its_pairs::<f32>();
    what_is_no_number_stays_with_its_pairs::<f64>();
}

/// Zeros of either sign do not spike, whatever the threshold; what is as large as the threshold does.
#[test]
fn zeros_never_spike_and_the_threshold_does() {
    let values = [0.0, -0.0, 0.25, -0.25, 0.5, -0.5];
    let q = Array4::<f64>::ones((1, 1, 1, 1));
    let k = Array4::from_shape_fn((1, 1, 6, 1), |(.., j, _)| values[j]);
    for (threshold, spikes) in [
        (0.0, [0, 0, 1, -1, 1, -1]),
        (0.25, [0, 0, 1, -1, 1, -1]),
        (0.5, [0, 0, 0, 0, 1, -1]),
    ] {
        let counted = ternary(k.view(), threshold).unwrap();
        assert!(counted.iter().eq(&spikes), "{threshold}");
        let settings = Settings::bipolar(threshold, 1.0, &Mask::none());
        let shown = weights(q.view(), k.view(), &settings).unwrap();
        let first = shown[[0, 0, 0, 0]];
        let powers = shown.iter().map(|w| (w / first).log2());
        assert!(powers.eq(spikes.map(f64::from)), "{threshold}");
    }
}

/// The window is open, and one too narrow for its slope leaves gradients of zero alone.
#[test]
fn slopes_end_where_their_window_does() {
    let values = [0.0, 0.25, 0.5, 0.75, 0.999, 1.0];
    let q = Array4::from_shape_fn((1, 1, 6, 1), |(.., i, _)| values[i]);
    let k = concatenate![Axis(2), q, -&q];
    let v: Array4<f64> = random([1, 1, 12, 2], "values");
    let g: Array4<f64> = random([1, 1, 6, 2], "cotangent");
    let gradients = |width: f64, mask: &Mask| {
        let settings = Settings::bipolar(0.5, width, mask);
        let attended = attend(q.view(), k.view(), v.view(), &settings).unwrap();
        attend_vjp(&attended, g.view()).unwrap().q
    };
    for (width, has_slope) in [
        (1.0, [false, true, true, true, true, false]),
        (0.5, [false, false, true, false, false, false]),
    ] {
        let got = gradients(width, &Mask::none());
        assert!(
            got.iter().map(|&x| x != 0.0).eq(has_slope),
            "{width}: {got}"
        );
    }
    // One key has all the weight, whatever its score.
    let first = Mask::none().with_key_lengths(vec![1]);
    let got = gradients(1e-323, &first);
    assert!(got.iter().all(|&x| x == 0.0), "{got}");
}

#[test]
fn thresholds_and_windows_out_of_range_are_named() {
    let x = Array4::<f64>::ones((1, 1, 2, 3));
    for (threshold, width, name) in [
        (-0.5, 1.0, "threshold"),
        (f64::NAN, 1.0, "threshold"),
        (f64::INFINITY, 1.0, "threshold"),
        (0.5, 0.0, "surrogate_width"),
        (0.5, -1.0, "surrogate_width"),
        (0.5, f64::NAN, "surrogate_width"),
        (0.5, f64::INFINITY, "surrogate_width"),
    ] {
        let settings = Settings::bipolar(threshold, width, &Mask::none());
        let refused = attend(x.view(), x.view(), x.view(), &settings).unwrap_err();
        assert!(names(&refused, name), "{threshold}, {width}: {refused}");
    }
}

/// Bits are counted where numbers would be multiplied, so that a wider product has no more operations; but not in narrow
/// heads, whose numbers are multiplied in less time.
#[test]
fn wider_scores_have_no_more_operations() {
    let operations = |width: usize| {
        let [q, k] = [9, 40].map(|time| random::<f32, _>([1, 2, time, width], "stream"));
        let v: Array4<f32> = random([1, 2, 40, 3], "values");
        let settings = Settings::bipolar(0.5, 1.0, &Mask::none());
        count(|| attend(q.view(), k.view(), v.view(), &settings).unwrap()).1
    };
    let few = operations(32);
    assert!(few.multiply_adds > 0 && few.exponentials > 0);
    assert_eq!(operations(200), few);
    assert!(operations(31).multiply_adds > few.multiply_adds);
}
