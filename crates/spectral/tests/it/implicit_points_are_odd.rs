//! $w(-z) = -w(z)$: symmetric noise gives a symmetric spectral density.

use crate::common::{Parameters, random};
use bochner_numerics::relative_error;
use bochner_spectral::{AffineGradients, ImplicitDensity};
use ndarray::{Array2, Axis, s};
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
        let ones = Array2::ones((1, 3));
        let gradients = p.density().points_vjp(z.view(), ones.view()).unwrap();
        prop_assert_eq!(gradients.z[[0, 1]], 0.0);
    }
}

/// The network works on blocks of 512 rows.
#[test]
fn blocks_are_rows_of_one_function() {
    let (p, block) = (Parameters::<f64>::new(2, 2, 8), 512);
    let rows = 2 * block + 7;
    let z: Array2<f64> = random((rows, 2), 8, "z");
    let w = p.density().points(z.view()).unwrap();
    let ones = Array2::ones((rows, 2));
    let gradients = p.density().points_vjp(z.view(), ones.view()).unwrap();
    for t in [0, block - 1, block, rows - 1] {
        let row = z.slice(s![t..t + 1, ..]);
        let alone = p.density().points(row).unwrap();
        let one = Array2::ones((1, 2));
        let gradient = p.density().points_vjp(row, one.view()).unwrap();
        for l in 0..2 {
            assert!((w[[t, l]] - alone[[0, l]]).abs() < 1e-12);
            assert!((gradients.z[[t, l]] - gradient.z[[0, l]]).abs() < 1e-12);
        }
    }
    // The last bias goes straight to the output, with the sign.
    let want: f64 = z.column(0).iter().map(|z| z.signum()).sum();
    assert!((gradients.layers[2].bias[0] - want).abs() < 1e-9);
    // The gradients of the parameters are sums over all blocks.
    let parts = z.axis_chunks_iter(Axis(0), 300).map(|z| {
        let ones = Array2::ones(z.dim());
        p.density().points_vjp(z, ones.view()).unwrap().layers
    });
    let parts: Vec<_> = parts.collect();
    for (n, whole) in gradients.layers.iter().enumerate() {
        let mut sum = parts[0][n].clone();
        for part in &parts[1..] {
            sum.weight += &part[n].weight;
            sum.bias += &part[n].bias;
        }
        let all = |x: &AffineGradients<f64>| -> Vec<f64> {
            x.weight.iter().chain(&x.bias).copied().collect()
        };
        assert!(relative_error(&all(whole), &all(&sum)) < 1e-12);
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let (p, z) = (Parameters::new(3, 3, 8), Array2::<f64>::zeros((2, 3)));
    let wide = Array2::zeros((2, 4));
    let error = p.density().points(wide.view()).unwrap_err();
    assert!(error.to_string().starts_with("`layers[0].weight`"));
    let error = p.density().points_vjp(z.view(), wide.view()).unwrap_err();
    assert!(error.to_string().starts_with("`cotangent`"));
    let steep = ImplicitDensity {
        slope: -0.1,
        ..p.density()
    };
    let error = steep.points(z.view()).unwrap_err();
    assert!(error.to_string().starts_with("`slope` is -0.1"));
}
