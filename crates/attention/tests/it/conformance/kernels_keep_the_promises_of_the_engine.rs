//! The kernels of the papers pass the checks that the engine has for anybody's kernel, with every magnitude: gradients,
//! biases, masks, heads that share keys, blocks, both forms, and decoding.

use crate::conformance::common::*;
use bochner_attention::engine::conformance::{Trial, agree, check};
use bochner_attention::kernels::{self, Points, RandomFeatureMap, Trained};
use bochner_attention::{Magnitude, Mask, Settings};
use bochner_numerics::Real;
use ndarray::{Array3, Array4, ArrayView4, s};

const MAGNITUDES: [Magnitude; 4] = [
    Magnitude::None,
    Magnitude::Norm { p: 2.0 },
    Magnitude::Norm { p: 1.3 },
    Magnitude::Released { p: 2.0 },
];

/// The width of a trial's queries and keys.
const WIDE: usize = 4;

/// The kernels, and how many spectral points of each kind they learn.
const KERNELS: [(&str, usize); 5] = [
    ("rbf", 0),
    ("expsin", 0),
    ("linear", 0),
    ("stationary", 1),
    ("non-stationary", 2),
];

const POINTS: usize = 3;

fn kernel<T: Real>(name: &str, mask: &Mask, learnt: &[T]) -> Settings<T> {
    // Each head has all points of the first kind, then all of the second.
    let kinds = learnt.len() / (HEADS * POINTS * WIDE);
    let all = ArrayView4::from_shape((HEADS, kinds, POINTS, WIDE), learnt).unwrap();
    let of = |kind| {
        all.slice(s![.., kind..=kind, .., ..])
            .permuted_axes([1, 0, 2, 3])
    };
    match name {
        "rbf" => kernels::rbf(mask),
        "expsin" => kernels::expsin(2.7, mask),
        "linear" => kernels::linear(mask),
        "stationary" => kernels::squared(Points::Stationary { w: of(0) }, 1e-3, mask),
        _ => {
            let points = Points::Nonstationary {
                w1: of(0),
                w2: of(1),
            };
            kernels::squared(points, 1e-3, mask)
        }
    }
}

fn conforms(label: &str, double: Trial<f64>, single: Trial<f32>) {
    let result = check(&double).and_then(|()| agree(&double, &single));
    result.unwrap_or_else(|failure| panic!("{label}: {failure}"));
}

#[test]
fn with_every_magnitude() {
    fn trial<T: Real>((name, kinds): (&'static str, usize), magnitude: Magnitude) -> Trial<T> {
        let learnt: Array4<T> = random((HEADS, kinds, POINTS, WIDE), "points");
        let learnt = learnt.into_iter().collect();
        Trial::with_learnt(learnt, move |mask, learnt| match magnitude {
            Magnitude::None => kernel(name, mask, learnt),
            magnitude => kernel(name, mask, learnt).with_key_weight(magnitude),
        })
    }
    // Every magnitude with some kernel. Mechanisms show the rest of those without spectral points.
    for (n, own) in KERNELS.into_iter().enumerate().take(3) {
        let magnitude = MAGNITUDES[n];
        let result = agree(&trial(own, magnitude), &trial(own, magnitude));
        result.unwrap_or_else(|failure| panic!("{}, {magnitude:?}: {failure}", own.0));
    }
    for (own, magnitude) in [
        (KERNELS[3], MAGNITUDES[3]),
        (KERNELS[4], MAGNITUDES[0]),
        (KERNELS[4], MAGNITUDES[2]),
    ] {
        let label = format!("{}, {magnitude:?}", own.0);
        conforms(&label, trial(own, magnitude), trial(own, magnitude));
    }
}

#[test]
fn with_every_map_of_random_features() {
    fn trial<T: Real>(map: RandomFeatureMap) -> Trial<T> {
        let w: Array3<T> = random((HEADS, 5, WIDE), "frequencies");
        Trial::with_learnt(w.iter().copied().collect(), move |mask, w| {
            let w = Array3::from_shape_vec((HEADS, 5, WIDE), w.to_vec()).unwrap();
            kernels::random_features(w.view(), map, Trained::Yes, mask)
        })
    }
    for map in [
        RandomFeatureMap::Positive,
        RandomFeatureMap::Hyperbolic,
        RandomFeatureMap::Relu { epsilon: 0.3 },
    ] {
        let (mut double, mut single) = (trial(map), trial(map));
        // The rectifier has kinks.
        let is_smooth = !matches!(map, RandomFeatureMap::Relu { .. });
        (double.is_smooth, single.is_smooth) = (is_smooth, is_smooth);
        conforms(&format!("{map:?}"), double, single);
    }
}
