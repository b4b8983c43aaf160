//! Student's t density, behind the Matérn kernels.

use super::{SpectralDensity, each_row, rows};
use crate::Error;
use bochner_numerics::{Real, argument, standard_normal};
use ndarray::{Array1, Array2, ArrayView2};
use rand::RngCore;
use std::f64::consts::PI;

/// A centred multivariate Student t density.
///
/// $$p(w) = \frac{\Gamma(\frac{n + d}2)}{\Gamma(\frac n2) (n \pi)^{d / 2} \prod_i s_i}
/// \Bigl(1 + \frac1n \sum_i \frac{w_i^2}{s_i^2}\Bigr)^{-(n + d) / 2}$$
///
/// *where* $n$ are the `degrees` of freedom and $s_i > 0$ the scales. With $n = 2 \nu$ and
/// $s_i = 1 / l_i$ its kernel is the [`Matern`](crate::Matern) of smoothness $\nu$. The
/// coordinates share one heavy tail: they are uncorrelated, not independent.
///
/// # Numerics
/// A draw is a normal vector over the root of a mean of $n$ squared normal numbers. With $n \le 2$
/// it has no variance, and a [`UniformBound`](crate::UniformBound) on features does not apply.
///
/// # Reference
/// Rasmussen, Williams, *Gaussian Processes for Machine Learning*, 2006, equation 4.15.
///
/// # Example
/// ```
/// use bochner_kernels::{SpectralDensity, StudentTDensity};
/// use bochner_kernels::ndarray::array;
///
/// // On the line and with one degree of freedom, Cauchy's density.
/// let density = StudentTDensity::new(1, vec![2.0])?;
/// let log = density.log_density(array![[2.0_f64]].view())?[0];
/// assert!((log.exp() - 1.0 / (4.0 * std::f64::consts::PI)).abs() < 1e-15);
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct StudentTDensity<T> {
    degrees: usize,
    scale: Vec<T>,
}

impl<T: Real> StudentTDensity<T> {
    /// The density with these degrees of freedom and one scale per coordinate.
    ///
    /// # Errors
    /// [`Error::Argument`] unless the degrees and all scales are finite and positive,
    /// or if there is no scale.
    pub fn new(degrees: usize, scale: Vec<T>) -> Result<Self, Error> {
        argument::not_empty("scale", &[scale.len()])?;
        argument::at_least_one("degrees", degrees)?;
        scale
            .iter()
            .try_for_each(|&s| argument::positive("scale", s))?;
        Ok(Self { degrees, scale })
    }

    fn log_normaliser(&self) -> f64 {
        let (n, d) = (self.degrees, self.scale.len());
        let scales: f64 = self.scale.iter().map(|s| s.as_f64().ln()).sum();
        ln_gamma_of_half(n) + 0.5 * d as f64 * (n as f64 * PI).ln() + scales
            - ln_gamma_of_half(n + d)
    }
}

impl<T: Real> SpectralDensity<T> for StudentTDensity<T> {
    fn width(&self) -> usize {
        self.scale.len()
    }

    fn sample(&self, count: usize, rng: &mut dyn RngCore) -> Result<Array2<T>, Error> {
        let degrees = self.degrees as f64;
        rows(count, self.width(), |w| {
            let squares = (0..self.degrees).map(|_| standard_normal::<f64>(rng).powi(2));
            let shrink = (squares.sum::<f64>() / degrees).sqrt();
            for (w, scale) in w.iter_mut().zip(&self.scale) {
                let normal: f64 = standard_normal(rng);
                *w = T::of(scale.as_f64() * normal / shrink);
            }
        })
    }

    fn log_density(&self, w: ArrayView2<T>) -> Result<Array1<T>, Error> {
        let normaliser = self.log_normaliser();
        let (degrees, width) = (self.degrees as f64, self.width());
        each_row(width, w, |w| {
            let scaled = w.iter().zip(&self.scale);
            let sum: f64 = scaled.map(|(w, s)| (w.as_f64() / s.as_f64()).powi(2)).sum();
            -0.5 * (degrees + width as f64) * (sum / degrees).ln_1p() - normaliser
        })
    }
}

/// $\log \Gamma(n / 2)$, by the recursion from $\Gamma(1) = 1$ or $\Gamma(1/2) = \sqrt\pi$.
fn ln_gamma_of_half(n: usize) -> f64 {
    let (start, first) = if n.is_multiple_of(2) {
        (0.0, 2)
    } else {
        (0.5 * PI.ln(), 1)
    };
    let factors = (first..n).step_by(2).map(|k| (k as f64 / 2.0).ln());
    start + factors.sum::<f64>()
}
