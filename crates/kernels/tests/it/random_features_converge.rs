//! The error of random features falls like $1 / \sqrt R$, for every kernel with a density and in any
//! number of dimensions, and orthogonal ones are closer.
//!
//! Wrong versions it catches: another kernel's density, frequencies without their $2 \pi$, and
//! features that are not averaged.

use crate::kernels::with_densities;
use bochner_kernels::{
    Coupling, Kernel, Lengthscale, Norms, RandomFrequencies, Rbf, RbfConfig, Stationary,
    coupled_frequencies, random_frequencies,
};
use bochner_numerics::{Seed, standard_normal};
use ndarray::Array2;

fn inputs(rows: usize, width: usize) -> Array2<f64> {
    let mut stream = Seed::new(21).stream("inputs");
    Array2::from_shape_simple_fn((rows, width), || standard_normal(&mut stream))
}

/// The root of the mean squared error over all pairs and over `draws` draws.
fn error(
    kernel: &dyn Kernel<f64>,
    x: &Array2<f64>,
    draws: u64,
    features: impl Fn(Seed) -> RandomFrequencies<f64>,
) -> f64 {
    let exact = kernel.gram(x.view(), x.view()).unwrap();
    let squares = (0..draws).map(|draw| {
        let features = features(Seed::new(22).nth(draw));
        let off = features.gram(x.view(), x.view()).unwrap() - &exact;
        off.mapv(|e| e * e).mean().unwrap()
    });
    (squares.sum::<f64>() / draws as f64).sqrt()
}

fn independent(
    kernel: &dyn Stationary<f64>,
    width: usize,
    count: usize,
    seed: Seed,
) -> RandomFrequencies<f64> {
    random_frequencies(kernel, width, count, &mut seed.stream("frequencies")).unwrap()
}

fn orthogonal(kernel: &Rbf<f64>, width: usize, count: usize, seed: Seed) -> RandomFrequencies<f64> {
    let how = (Coupling::Orthogonal, Norms::Chi);
    coupled_frequencies(kernel, width, count, how, &mut seed.stream("frequencies")).unwrap()
}

/// The slope of the best straight line.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |f: fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>() / count;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let covariance: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    covariance / points.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>()
}

#[test]
fn the_error_falls_like_the_root_of_the_number_of_points() {
    for width in [1, 2, 64] {
        let x = inputs(10, width);
        for kernel in with_densities(width) {
            let measured = [64_usize, 256, 1024].map(|count| {
                let features = |seed| independent(kernel.as_ref(), width, count, seed);
                let error = error(kernel.as_ref(), &x, 10, features);
                ((count as f64).ln(), error.ln())
            });
            let slope = slope(&measured);
            let label = format!("width {width}, {kernel:?}");
            assert!((-0.65..=-0.35).contains(&slope), "{label}: {slope}");
            // A wrong density has an error that stays; this one is what one draw of a cosine
            // allows.
            let last = measured[2].1.exp() / kernel.variance();
            assert!(last < 1.0 / 32.0, "{label}: {last}");
        }
    }
}

#[test]
fn orthogonal_frequencies_are_closer_than_independent_ones() {
    let (width, count) = (8, 32);
    let x = inputs(10, width);
    let lengthscale = Lengthscale::Shared((width as f64).sqrt());
    let kernel = RbfConfig { lengthscale }.build().unwrap();
    let plain = error(&kernel, &x, 60, |seed| {
        independent(&kernel, width, count, seed)
    });
    let blocks = error(&kernel, &x, 60, |seed| {
        orthogonal(&kernel, width, count, seed)
    });
    assert!(blocks < 0.8 * plain, "{blocks} against {plain}");
}

#[test]
fn orthogonal_frequencies_converge_to_the_same_kernel() {
    let x = inputs(10, 3);
    let lengthscale = Lengthscale::PerDimension(vec![0.7, 1.0, 2.5]);
    let kernel = RbfConfig { lengthscale }.build().unwrap();
    // Not a multiple of the width: the last block is cut.
    let last = error(&kernel, &x, 5, |seed| orthogonal(&kernel, 3, 8191, seed));
    assert!(last < 0.01, "{last}");
}

#[test]
fn the_draws_of_both_precisions_are_the_same_numbers() {
    let single = RbfConfig {
        lengthscale: Lengthscale::Shared(1.0_f32),
    };
    let double = RbfConfig {
        lengthscale: Lengthscale::Shared(1.0_f64),
    };
    let (single, double) = (single.build().unwrap(), double.build().unwrap());
    let stream = || Seed::new(8).stream("frequencies");
    let w32 = random_frequencies(&single, 3, 5, &mut stream()).unwrap().w;
    let w64 = random_frequencies(&double, 3, 5, &mut stream()).unwrap().w;
    assert_eq!(w32, w64.mapv(|w| w as f32));
}
