//! Proposition 3: with $w \sim N(0, I / (2 l^2))$, $f_S$ goes to $\exp(-|t|^2 / (4 l^2))$ and its
//! square to $\exp(-|t|^2 / (2 l^2))$, almost surely; the error falls like $1 / \sqrt R$.
//!
//! Wrong versions it catches: the density of the plain kernel, $N(0, I / l^2)$; a mean that is a
//! sum; an error that stays, or that falls like $1 / R$.

use bochner_kernels::{
    Kernel, Lengthscale, Rbf, RbfConfig, SpectralDensity, SpectralPoints, kernel_matrix,
    squared_rbf_density,
};
use bochner_numerics::{Seed, standard_normal};
use ndarray::{Array1, Array2, Axis};
use proptest::prelude::*;

const POINTS: usize = 4096;

/// Seven standard deviations of a mean of cosines, which vary by at most $1 / \sqrt 2$.
const BOUND: f64 = 5.0 / 64.0;

fn rbf(lengthscale: f64) -> Rbf<f64> {
    let lengthscale = Lengthscale::Shared(lengthscale);
    RbfConfig { lengthscale }.build().unwrap()
}

fn frequencies(lengthscale: f64, width: usize, count: usize, seed: u64) -> Array2<f64> {
    let density = squared_rbf_density(&rbf(lengthscale), width).unwrap();
    let mut stream = Seed::new(seed).stream("frequencies");
    density.sample(count, &mut stream).unwrap()
}

/// $f_S$ of the difference of two points.
fn features(t: &Array1<f64>, w: &Array2<f64>) -> f64 {
    let (t, origin) = (t.view().insert_axis(Axis(0)), Array2::zeros((1, t.len())));
    let points = SpectralPoints::Stationary { w: w.view() };
    kernel_matrix(t, origin.view(), &points).unwrap()[[0, 0]]
}

/// A difference of the given length, in a direction of its own.
fn difference(width: usize, length: f64, seed: u64) -> Array1<f64> {
    let mut stream = Seed::new(seed).stream("direction");
    let t: Array1<f64> = (0..width).map(|_| standard_normal(&mut stream)).collect();
    let norm = t.dot(&t).sqrt();
    t * (length / norm)
}

proptest! {
    #[test]
    fn features_and_their_square_go_to_the_two_kernels(
        lengthscale in 0.3..3.0f64,
        relative in 0.0..3.0f64,
        width in 1..=64_usize,
        seed in any::<u64>(),
    ) {
        let t = difference(width, relative * lengthscale, seed);
        let f = features(&t, &frequencies(lengthscale, width, POINTS, seed));
        let squared = rbf(lengthscale).value(t.view(), Array1::zeros(width).view()).unwrap();
        prop_assert!((f - (-relative * relative / 4.0).exp()).abs() < BOUND);
        prop_assert!((f * f - squared).abs() < 2.0 * BOUND);
    }

    /// The density of the RBF itself, twice as wide, is not the one that is meant.
    #[test]
    fn the_density_of_the_plain_kernel_is_caught(
        lengthscale in 0.3..3.0f64,
        relative in 1.3..1.9f64,
        width in 1..=64_usize,
        seed in any::<u64>(),
    ) {
        let t = difference(width, relative * lengthscale, seed);
        let w = frequencies(lengthscale, width, POINTS, seed) * std::f64::consts::SQRT_2;
        let error = features(&t, &w) - (-relative * relative / 4.0).exp();
        prop_assert!(error.abs() > BOUND);
    }
}

#[test]
fn the_error_falls_like_the_root_of_the_number_of_points() {
    for width in [1, 4, 64] {
        let errors = [64, 1024, 16_384].map(|count| {
            let squares = (0..40).map(|seed| {
                let w = frequencies(1.0, width, count, seed);
                let f = features(&difference(width, 1.5, seed), &w);
                (f * f - (-1.5_f64 * 1.5 / 2.0).exp()).powi(2)
            });
            (squares.sum::<f64>() / 40.0).sqrt()
        });
        for pair in errors.windows(2) {
            // Sixteen times the points, a quarter of the error.
            let ratio = pair[0] / pair[1];
            assert!((2.0..8.0).contains(&ratio), "width {width}: {errors:?}");
        }
    }
}

/// Far apart, the square's mean is not its limit zero but the variance of the features.
#[test]
fn the_square_has_a_floor() {
    let count = 32;
    let draws = 2000;
    let squares = (0..draws).map(|seed| {
        let f = features(
            &difference(2, 12.0, seed),
            &frequencies(1.0, 2, count, seed),
        );
        f * f
    });
    let mean = squares.sum::<f64>() / draws as f64;
    assert!((mean * 2.0 * count as f64 - 1.0).abs() < 0.2, "{mean}");
}
