//! $w(-z) = -w(z)$: symmetric noise gives a symmetric spectral density.

use crate::common::{Parameters, random};
use bochner_spectral::ImplicitDensity;
use ndarray::Array2;
use proptest::prelude::*;

fn density(p: &Parameters<f64>) -> ImplicitDensity<'_, f64> {
    ImplicitDensity {
        w1: p.weights[0].view(),
        b1: p.biases[0].view(),
        w2: p.weights[1].view(),
        b2: p.biases[1].view(),
        w3: p.weights[2].view(),
        b3: p.biases[2].view(),
        slope: 0.2,
    }
}

proptest! {
    #[test]
    fn mirrored_noise_gives_mirrored_points(
        seed in 0..1000u64,
        rows in 0..6usize,
        width in 1..6usize,
    ) {
        let p = Parameters::new(width, width, seed);
        let z: Array2<f64> = random((rows, width), seed, "z");
        let points = density(&p).points(z.view()).unwrap();
        let mirrored = density(&p).points((-&z).view()).unwrap();
        prop_assert_eq!(mirrored, -points);
    }

    #[test]
    fn the_gradient_along_the_noise_is_even(seed in 0..1000u64, width in 1..6usize) {
        let p = Parameters::new(width, width, seed);
        let z: Array2<f64> = random((3, width), seed, "z");
        let cotangent: Array2<f64> = random((3, width), seed, "cotangent");
        let here = density(&p).points_vjp(z.view(), cotangent.view()).unwrap();
        let there = density(&p).points_vjp((-&z).view(), cotangent.view()).unwrap();
        prop_assert_eq!(&there.z, &here.z);
        prop_assert_eq!(there.w2, -here.w2);
    }

    #[test]
    fn a_zero_coordinate_stays_zero_and_the_others_do_not(seed in 0..1000u64) {
        let p = Parameters::new(3, 3, seed);
        let mut z: Array2<f64> = random((1, 3), seed, "z");
        z[[0, 1]] = 0.0;
        let points = density(&p).points(z.view()).unwrap();
        prop_assert_eq!(points[[0, 1]], 0.0);
        prop_assert!(points[[0, 0]] != 0.0 && points[[0, 2]] != 0.0);
    }
}
