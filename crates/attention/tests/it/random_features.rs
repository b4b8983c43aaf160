//! Random features by pairs: dropout, windows and cancelling weights, where a block or the range of numbers ends.

use crate::conformance::plain::{attend, attend_vjp, weights};
use bochner_attention::{
    Mask, Settings,
    kernels::{self, RandomFeatureMap, Trained},
};
use bochner_numerics::check::random;
use bochner_numerics::{DropoutMask, Seed, relative_error};
use ndarray::{Array2, Array3, Array4, s};

const HEADS: usize = 2;
const WIDTH: usize = 4;

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
