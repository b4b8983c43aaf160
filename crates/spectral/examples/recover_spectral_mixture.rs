//! Recovers the components of a spectral mixture, from its kernel and from samples of functions.
//!
//! `cargo run --package bochner-spectral --example recover_spectral_mixture`

#![allow(clippy::print_stdout)]

use bochner_kernels::{Cosine, Kernel, SpectralMixture, SpectralMixtureConfig, Stationary};
use bochner_numerics::Seed;
use bochner_spectral::ndarray::{Array2, array};
use bochner_spectral::rand::Rng;
use bochner_spectral::{
    DensityFitConfig, DirectEstimator, Error, GaussianEstimator, KernelValues, Prior,
    empirical_kernel, fit_stationary,
};
use std::f64::consts::{PI, SQRT_2, TAU};

/// The frequencies, in cycles per unit, and the shares of the components.
pub(crate) const MEANS: [f64; 2] = [0.4, 1.1];
pub(crate) const WEIGHTS: [f64; 2] = [0.6, 0.4];

/// A cycle per unit that lies between the components.
const BETWEEN: f64 = 0.75;

pub(crate) fn mixture() -> SpectralMixture<f64> {
    let config = SpectralMixtureConfig {
        weights: WEIGHTS.to_vec().into(),
        means: array![[MEANS[0]], [MEANS[1]]],
        variances: array![[0.001], [0.002]],
        cosine: Cosine::Joint,
    };
    config.build().expect("weights and variances are positive")
}

/// Inputs with heavy tails, at the quantiles of half a Cauchy distribution.
fn inputs(count: usize) -> Array2<f64> {
    Array2::from_shape_fn((count, 1), |(i, _)| {
        0.5 * (0.5 * PI * (i as f64 + 0.5) / count as f64).tan()
    })
}

/// Mean frequency and share of each component.
pub(crate) type Components = [(f64, f64); 2];

/// The median frequency on either side, and the share of the points there.
fn components(w: &Array2<f64>) -> Components {
    let mut frequencies: Vec<f64> = w.iter().map(|w| w.abs() / TAU).collect();
    frequencies.sort_by(f64::total_cmp);
    let first = frequencies.partition_point(|&f| f < BETWEEN);
    let (low, high) = frequencies.split_at(first);
    [low, high].map(|side| {
        let median = side.get(side.len() / 2).copied().unwrap_or(f64::NAN);
        (median, side.len() as f64 / w.len() as f64)
    })
}

/// Points fitted to the values, and the squared error that is left.
fn fitted(target: &KernelValues) -> Result<(Components, f64), Error> {
    let mut stream = Seed::new(1).stream("points");
    let w = Prior { std: 5.0 }.sample((64, 1), &mut stream)?;
    let mut density = DirectEstimator { w };
    let config = DensityFitConfig {
        steps: 1500,
        ..Default::default()
    };
    let fit = fit_stationary(&mut density, target, &config)?;
    Ok((components(&density.w), fit.losses[fit.best]))
}

pub(crate) fn from_kernel() -> Result<(Components, f64), Error> {
    let (x, y) = (inputs(200), array![[0.0]]);
    let values = mixture().gram(x.view(), y.view())?;
    fitted(&KernelValues {
        x: x.view(),
        y: y.view(),
        values: values.view(),
    })
}

/// Functions with the kernel as covariance: waves of random frequency and phase.
fn functions(count: usize, x: &Array2<f64>) -> Result<Array2<f64>, Error> {
    let mut stream = Seed::new(1).stream("functions");
    let w = mixture().density(1)?.sample(count, &mut stream)?;
    let phases: Vec<f64> = (0..count).map(|_| stream.gen_range(0.0..TAU)).collect();
    Ok(Array2::from_shape_fn((count, x.nrows()), |(s, i)| {
        SQRT_2 * (w[[s, 0]] * x[[i, 0]] + phases[s]).cos()
    }))
}

pub(crate) fn from_samples() -> Result<(Components, f64), Error> {
    let x = inputs(60);
    let values = empirical_kernel(functions(4000, &x)?.view())?;
    fitted(&KernelValues {
        x: x.view(),
        y: x.view(),
        values: values.view(),
    })
}

/// Returns the error that remains if the density may only be a Gaussian around zero.
pub(crate) fn gaussian_error() -> Result<f64, Error> {
    let (x, y) = (inputs(200), array![[0.0]]);
    let values = mixture().gram(x.view(), y.view())?;
    let eps = Prior { std: 1.0 }.sample((128, 1), &mut Seed::new(1).stream("points"))?;
    let mut density = GaussianEstimator {
        log_std: array![0.0],
        eps,
    };
    let target = KernelValues {
        x: x.view(),
        y: y.view(),
        values: values.view(),
    };
    let config = DensityFitConfig {
        steps: 200,
        ..Default::default()
    };
    let fit = fit_stationary(&mut density, &target, &config)?;
    Ok(fit.losses[fit.best])
}

fn main() -> Result<(), Error> {
    println!("                 frequency share    frequency share    squared error");
    let [(f, a), (g, b)] = [(MEANS[0], WEIGHTS[0]), (MEANS[1], WEIGHTS[1])];
    println!("the mixture      {f:9.4} {a:5.2}    {g:9.4} {b:5.2}");
    for (name, found) in [
        ("from its kernel", from_kernel()?),
        ("from samples", from_samples()?),
    ] {
        let ([(f, a), (g, b)], error) = found;
        println!("{name:<16} {f:9.4} {a:5.2}    {g:9.4} {b:5.2}    {error:.1e}");
    }
    let error = gaussian_error()?;
    println!("a Gaussian density around zero leaves a squared error of {error:.1e}");
    Ok(())
}
