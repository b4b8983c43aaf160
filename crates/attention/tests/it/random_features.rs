//! Random features by pairs: dropout, windows and cancelling weights, where a block or the range of numbers ends.

use bochner_attention::{Form, Mask, Settings, engine::{Decoder, DecoderSize}, kernels::{RandomFeatureMap, Trained, self}};
use crate::conformance::plain::{attend, attend_vjp, weights};
use bochner_numerics::check::random;
use bochner_numerics::{DropoutMask, Seed, relative_error};
use ndarray::{Array2, Array3, Array4, arr1, s};
use std::f32::consts::PI;

const HEADS: usize = 2;
const WIDTH: usize = 4;
const SIZE: DecoderSize = DecoderSize {
    batch: 1,
    heads: HEADS,
    width: WIDTH,
    value_width: 3,
};

/// The mask of dropout is one of all pairs: each key has its own factor, in whichever block of 128 it stands.
#[test]
fn dropout_knows_each_key_beyond_the_first_block() {
    let (queries, keys) = (5, 300);
    let w: Array3<f64> = random([HEADS, 6, WIDTH], "frequencies");
    let q: Array4<f64> = random([1, HEADS, queries, WIDTH], "queries");
    let k: Array4<f64> = random([1, HEADS, keys, WIDTH], "keys");
    let v: Array4<f64> = random([1, HEADS, keys, 3], "values");
    let g: Array4<f64> = random([1, HEADS, queries, 3], "cotangent");
    let dropout = DropoutMask::new(0.4, Seed::new(3)).unwrap();
    let mask = Mask::none();
    let plain = kernels::random_features(w.view(), RandomFeatureMap::Positive, Trained::No, &mask);
    let mut kept = weights(q.view(), k.view(), &plain).unwrap();
    dropout.scale(0, kept.as_slice_mut().unwrap());
    let settings = Settings {
        dropout: Some(dropout),
        ..plain
    };
    let attended = attend(q.view(), k.view(), v.view(), &settings).unwrap();
    let pulled = attend_vjp(&attended, g.view()).unwrap();
    for m in 0..HEADS {
        let of = |x: &Array4<f64>| -> Array2<f64> { x.slice(s![0, m, .., ..]).to_owned() };
        let kept = of(&kept);
        for (got, want) in [
            (of(&attended.output), kept.dot(&of(&v))),
            (of(&pulled.v), kept.t().dot(&of(&g))),
        ] {
            let flat = |x: Array2<f64>| x.iter().copied().collect::<Vec<_>>();
            assert!(relative_error(&flat(got), &flat(want)) < 1e-12, "{m}");
        }
    }
}

fn step(decoder: &mut Decoder<f32>, [q, k, v]: [&Array4<f32>; 3], at: [usize; 2]) -> Array4<f32> {
    let at = s![.., .., at[0]..at[1], ..];
    decoder.step(q.slice(at), k.slice(at), v.slice(at)).unwrap()
}

fn differ(got: &Array4<f32>, want: &Array4<f32>) -> f64 {
    let flat = |x: &Array4<f32>| x.iter().map(|&x| x.into()).collect::<Vec<f64>>();
    relative_error(&flat(got), &flat(want))
}

/// The unit of values is that of those that a window still sees.
#[test]
fn values_that_a_window_has_passed_take_no_digits() {
    let w: Array3<f32> = random([HEADS, 6, WIDTH], "frequencies");
    let streams = [("q", WIDTH), ("k", WIDTH), ("v", 3)];
    let [q, k, mut v] = streams.map(|(name, width)| random::<f32, _>([1, HEADS, 400, width], name));
    v *= 1e-36;
    v.slice_mut(s![.., .., ..128, ..]).fill(3e38);
    let mask = Mask::none().with_causality().with_window(5, 0).unwrap();
    let map = RandomFeatureMap::Positive;
    let settings = Settings {
        form: Form::Pairwise,
        ..kernels::random_features(w.view(), map, Trained::No, &mask)
    };
    let [mut all, mut late] = [0, 1].map(|_| Decoder::new(&settings, SIZE).unwrap());
    let streams = [&q, &k, &v];
    step(&mut all, streams, [0, 256]);
    for (from, to) in [(256, 300), (300, 301), (301, 400)] {
        let [got, want] = [&mut all, &mut late].map(|decoder| step(decoder, streams, [from, to]));
        // The first of them see positions that the other decoder has not.
        let seen = s![.., .., if from == 256 { 5 } else { 0 }.., ..];
        let [got, want] = [got, want].map(|x| x.slice(seen).to_owned() * 1e36);
        assert!(want.iter().any(|x| x.abs() > 0.1));
        assert!(differ(&got, &want) < 1e-5, "{from}");
    }
}

/// Weights of either sign whose sum is so small that its inverse overflows: zeros stay zeros, and numbers finite.
#[test]
fn weights_that_nearly_cancel_divide_by_no_infinity() {
    // Half of a coordinate is met by twice pi: the cosine of the second key and of the fourth is -1.
    let mut w = Array3::<f32>::zeros((1, 1, 16));
    w[[0, 0, 0]] = 2.0 * PI;
    let mut k = Array4::<f32>::zeros((1, 1, 4, 16));
    for (j, coordinates) in [
        [0.0, 1.0, 26.153, 0.0],
        [1.0, 0.0, 26.153, 0.0],
        [0.0, 1.0, 0.0, 0.0],
        [1.0, 0.0, 0.0, 0.4],
    ]
    .iter()
    .enumerate()
    {
        let mut key = k.slice_mut(s![0, 0, j, ..4]);
        key.assign(&arr1(coordinates));
    }
    let q = Array4::<f32>::zeros((1, 1, 1, 16));
    let mask = Mask::none();
    let map = RandomFeatureMap::Trigonometric;
    let settings = Settings {
        form: Form::Pairwise,
        ..kernels::random_features(w.view(), map, Trained::No, &mask)
    };
    for value in [0.0, 1.0] {
        let v = Array4::<f32>::from_elem((1, 1, 4, 2), value);
        let attended = attend(q.view(), k.view(), v.view(), &settings).unwrap();
        let is_fine = |x: &f32| x.is_finite() && (value != 0.0 || *x == 0.0);
        assert!(attended.output.iter().all(is_fine), "{}", attended.output);
        let pulled = attend_vjp(&attended, v.slice(s![.., .., ..1, ..])).unwrap();
        let mut all = pulled.q.iter().chain(&pulled.k).chain(&pulled.v);
        assert!(all.all(|x| x.is_finite()));
    }
}
