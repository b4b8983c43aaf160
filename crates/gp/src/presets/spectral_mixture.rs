//! A process for functions that oscillate.

use super::Scales;
use super::spectrum::{Lines, strongest};
use crate::{Error, GaussianProcess};
use bochner_kernels::{Cosine, SpectralMixtureConfig};
use bochner_numerics::{Seed, argument, standard_normal};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use std::f64::consts::TAU;

/// The process of a spectral mixture, started by the data's spectrum or scales.
///
/// Components that start alike have the same gradient, and stay alike for ever: five components that
/// start from one default make a mixture of one. Here all starts are distinct.
///
/// * **One input** (`d = 1`): the components sit on the strongest lines of the Lomb-Scargle
///   periodogram, which needs no regular spacing. Each line is the peak of what
///   the lines before it leave, up to half of the mean sampling rate. A component's weight is the
///   variance that its line explains, its width a quarter of the series' resolution $1 / T$. The
///   variance that no line explains is the noise.
/// * **Several inputs**, or one with fewer than four observations, with all of them at one place, or
///   with more than two components for each interval between observations: the first component is
///   smooth, with the lengthscales $s_n \sqrt d$ in dimension $n$ of standard deviation $s_n$. The
///   others are drawn from `seed`: lengthscales that differ from these by factors $e^{z / 2}$, and
///   frequencies $|z'| / (4 s_n \sqrt d)$, with $z$, $z'$ standard normal. Their weights are equal,
///   and a tenth of the variance is noise.
///
/// No weight starts below a thousandth of the targets' variance, and no noise below a hundredth.
/// The mean is that of the targets; the jitter escalates from $10^{-10}$ to $10^{-4}$ of their
/// variance.
///
/// # Shapes
/// `x: [n, d]`, `y: [n]`.
///
/// # Errors
/// [`Error::Argument`] without observations, inputs or components, for data of other shapes, that are
/// not finite or too large to be squared.
///
/// # Numerics
/// $O(n^2)$ time for each component if there is one input.
///
/// # Reference
/// Wilson, Adams, *Gaussian process kernels for pattern discovery and extrapolation*, ICML 2013;
/// Scargle, *Studies in astronomical time series analysis II*, 1982.
pub fn spectral_mixture_process(
    x: ArrayView2<f64>,
    y: ArrayView1<f64>,
    components: usize,
    seed: Seed,
) -> Result<GaussianProcess, Error> {
    argument::at_least_one("components", components)?;
    let scales = Scales::of(x, y)?;
    let lines = match x.ncols() {
        1 => strongest(x.column(0), y, components),
        _ => None,
    };
    let (mixture, noise) = match lines {
        Some(lines) => (on_lines(&lines, &scales), lines.rest),
        None => (by_scales(components, &scales, seed), 0.1 * scales.variance),
    };
    let noise = noise.max(0.01 * scales.variance);
    scales.process(mixture.build()?, noise)
}

fn on_lines(lines: &Lines, scales: &Scales) -> SpectralMixtureConfig<f64> {
    let floor = 1e-3 * scales.variance;
    let weights = lines.lines.iter().map(|l| l.variance.max(floor));
    let means: Vec<f64> = lines.lines.iter().map(|l| l.frequency).collect();
    let shape = (means.len(), 1);
    SpectralMixtureConfig {
        weights: weights.collect(),
        means: Array2::from_shape_vec(shape, means).expect("one for each line"),
        variances: Array2::from_elem(shape, lines.step * lines.step),
        cosine: Cosine::Joint,
    }
}

fn by_scales(count: usize, scales: &Scales, seed: Seed) -> SpectralMixtureConfig<f64> {
    let width = scales.spreads.len();
    let mut stream = seed.stream("spectral mixture");
    let mut draw = |q: usize| match q {
        0 => 0.0,
        _ => standard_normal::<f64>(&mut stream),
    };
    let reach = |n: usize| scales.spreads[n] * (width as f64).sqrt();
    let means = Array2::from_shape_fn((count, width), |(q, n)| draw(q).abs() / (4.0 * reach(n)));
    let variances = Array2::from_shape_fn((count, width), |(q, n)| {
        let lengthscale = reach(n) * (draw(q) / 2.0).exp();
        (TAU * lengthscale).powi(-2)
    });
    SpectralMixtureConfig {
        weights: Array1::from_elem(count, scales.variance / count as f64),
        means,
        variances,
        cosine: Cosine::Joint,
    }
}
