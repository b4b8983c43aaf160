//! The symmetrised mixture of Gaussians, behind the spectral mixture kernel.

use super::gaussian::log_normal;
use super::{SpectralDensity, each_row, rows};
use crate::Error;
use crate::stationary::{Cosine, SpectralMixture};
use bochner_numerics::{Real, standard_normal};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use rand::{Rng, RngCore};
use std::f64::consts::{LN_2, TAU};

/// The density of a [`SpectralMixture`]: a Gaussian for each component, at its frequency and at
/// the mirrored one.
///
/// $$p(w) = \sum_q \frac{w_q}{\sum_r w_r} \cdot \frac12 \bigl(N(w; m_q, \Sigma_q) +
/// N(w; -m_q, \Sigma_q)\bigr), \qquad m_q = 2 \pi \mu_q, \quad \Sigma_q = 4 \pi^2
/// \operatorname{diag} v_q$$
///
/// For [`Cosine::Product`] every coordinate is mirrored on its own: each factor of the Gaussian is
/// the mean over both signs.
///
/// [`Stationary::density`](crate::Stationary::density) of the kernel makes it.
///
/// # Numerics
/// Logarithms of sums are taken with the largest term factored out.
///
/// # Reference
/// Wilson, Adams, *Gaussian Process Kernels for Pattern Discovery and Extrapolation*, ICML 2013.
#[derive(Clone, Debug, PartialEq)]
pub struct MixtureDensity<T: Real> {
    kernel: SpectralMixture<T>,
    /// The components' shares, in double precision and adding up to one.
    shares: Vec<f64>,
}

impl<T: Real> MixtureDensity<T> {
    pub(super) fn of(kernel: &SpectralMixture<T>) -> Self {
        let weights: Vec<f64> = kernel
            .settings()
            .weights
            .iter()
            .map(|w| w.as_f64())
            .collect();
        let total: f64 = weights.iter().sum();
        Self {
            kernel: kernel.clone(),
            shares: weights.iter().map(|w| w / total).collect(),
        }
    }

    fn pick(&self, rng: &mut dyn RngCore) -> usize {
        let mut left: f64 = rng.r#gen();
        let found = self.shares.iter().position(|share| {
            left -= share;
            left < 0.0
        });
        // Only the rounding errors of the shares can be left over.
        found.unwrap_or(self.shares.len() - 1)
    }

    /// Mean and standard deviation of a component's coordinates, in radians per unit.
    fn coordinates(&self, q: usize) -> impl Iterator<Item = (f64, f64)> + '_ {
        let settings = self.kernel.settings();
        let means = settings.means.row(q).into_iter();
        let both = means.zip(settings.variances.row(q));
        both.map(|(m, v)| (TAU * m.as_f64(), TAU * v.as_f64().sqrt()))
    }

    fn log_component(&self, q: usize, w: &ArrayView1<T>) -> f64 {
        let along = |sign: f64| {
            let coordinates = w.iter().zip(self.coordinates(q));
            coordinates.map(move |(w, (mean, std))| log_normal(w.as_f64(), sign * mean, std))
        };
        match self.kernel.settings().cosine {
            Cosine::Joint => log_mean(along(1.0).sum(), along(-1.0).sum()),
            Cosine::Product => along(1.0)
                .zip(along(-1.0))
                .map(|(a, b)| log_mean(a, b))
                .sum(),
        }
    }
}

impl<T: Real> SpectralDensity<T> for MixtureDensity<T> {
    fn width(&self) -> usize {
        self.kernel.settings().means.ncols()
    }

    fn sample(&self, count: usize, rng: &mut dyn RngCore) -> Result<Array2<T>, Error> {
        let cosine = self.kernel.settings().cosine;
        rows(count, self.width(), |w| {
            let q = self.pick(rng);
            let mut sign = random_sign(rng);
            for (n, (w, (mean, std))) in w.iter_mut().zip(self.coordinates(q)).enumerate() {
                if n > 0 && cosine == Cosine::Product {
                    sign = random_sign(rng);
                }
                *w = T::of(sign * mean + std * standard_normal::<f64>(rng));
            }
        })
    }

    fn log_density(&self, w: ArrayView2<T>) -> Result<Array1<T>, Error> {
        each_row(self.width(), w, |w| {
            let shares = self.shares.iter().enumerate();
            let terms = shares.map(|(q, share)| share.ln() + self.log_component(q, &w));
            terms.fold(f64::NEG_INFINITY, log_sum)
        })
    }
}

fn random_sign(rng: &mut dyn RngCore) -> f64 {
    if rng.r#gen() { 1.0 } else { -1.0 }
}

/// $\log(e^a + e^b)$.
fn log_sum(a: f64, b: f64) -> f64 {
    let (larger, smaller) = if a < b { (b, a) } else { (a, b) };
    if larger == f64::NEG_INFINITY {
        return larger;
    }
    larger + (smaller - larger).exp().ln_1p()
}

fn log_mean(a: f64, b: f64) -> f64 {
    log_sum(a, b) - LN_2
}
