//! $w(-z) = -w(z)$: symmetric noise gives a symmetric spectral density.

use crate::common::{Parameters, random};
use ndarray::Array2;
use proptest::prelude::*;

proptest! {
    #[test]
    fn mirrored_noise_gives_mirrored_points(
        seed in 0..1000u64,
        rows in 0..6usize,
        width in 1..6usize,
    ) {
        let p = Parameters::new(width, width, seed);
        let z: Array2<f64> = random((rows, width), seed, "z");
        let points = p.density().points(z.view()).unwrap();
        let mirrored = p.density().points((-&z).view()).unwrap();
        prop_assert_eq!(mirrored, -points);
    }

    #[test]
    fn the_gradient_along_the_noise_is_even(seed in 0..1000u64, width in 1..6usize) {
        let p = Parameters::new(width, width, seed);
        let z: Array2<f64> = random((3, width), seed, "z");
        let cotangent: Array2<f64> = random((3, width), seed, "cotangent");
        let here = p.density().points_vjp(z.view(), cotangent.view()).unwrap();
        let there = p.density().points_vjp((-&z).view(), cotangent.view()).unwrap();
        prop_assert_eq!(&there.z, &here.z);
        prop_assert_eq!(&there.layers[1].weight, &-&here.layers[1].weight);
    }

    #[test]
    fn a_zero_coordinate_stays_zero_and_the_others_do_not(seed in 0..1000u64) {
        let p = Parameters::new(3, 3, seed);
        let mut z: Array2<f64> = random((1, 3), seed, "z");
        z[[0, 1]] = 0.0;
        let points = p.density().points(z.view()).unwrap();
        prop_assert_eq!(points[[0, 1]], 0.0);
        prop_assert!(points[[0, 0]] != 0.0 && points[[0, 2]] != 0.0);
    }
}
