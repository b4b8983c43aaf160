//! The Gaussian density, behind the RBF kernel.

use super::{SpectralDensity, each_row, rows};
use crate::Error;
use bochner_numerics::{Real, argument, normal, standard_normal};
use ndarray::{Array1, Array2, ArrayView2};
use rand::RngCore;

/// A centred Gaussian density with independent coordinates.
///
/// $$p(w) = \prod_n \frac{1}{\sqrt{2 \pi} s_n} \exp\Bigl(-\frac{w_n^2}{2 s_n^2}\Bigr)$$
///
/// *where* $s_n > 0$ are the standard deviations. Its kernel is
/// $\exp(-\frac12 \sum_n s_n^2 t_n^2)$: the [`Rbf`](crate::Rbf) of lengthscales $1 / s_n$.
///
/// # Example
/// ```
/// use bochner_kernels::{GaussianDensity, SpectralDensity};
/// use bochner_numerics::Seed;
///
/// let density = GaussianDensity::new(vec![0.5_f64, 2.0])?;
/// let w = density.sample(100, &mut Seed::new(1).stream("frequencies"))?;
/// assert_eq!(w.dim(), (100, 2));
/// assert!(density.log_density(w.view())?.iter().all(|log| *log <= -(2.0 * 3.14_f64).ln()));
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianDensity<T> {
    std: Vec<T>,
}

impl<T: Real> GaussianDensity<T> {
    /// The density with these standard deviations, one per coordinate.
    ///
    /// # Errors
    /// [`Error::Argument`] unless all are finite and positive, or if there is none.
    pub fn new(std: Vec<T>) -> Result<Self, Error> {
        argument::not_empty("std", &[std.len()])?;
        std.iter().try_for_each(|&s| argument::positive("std", s))?;
        Ok(Self { std })
    }
}

impl<T: Real> SpectralDensity<T> for GaussianDensity<T> {
    fn width(&self) -> usize {
        self.std.len()
    }

    fn sample(&self, count: usize, rng: &mut dyn RngCore) -> Result<Array2<T>, Error> {
        rows(count, self.width(), |w| {
            for (w, &std) in w.iter_mut().zip(&self.std) {
                *w = std * standard_normal(rng);
            }
        })
    }

    fn log_density(&self, w: ArrayView2<T>) -> Result<Array1<T>, Error> {
        each_row(self.width(), w, |w| {
            let both = w.iter().zip(&self.std);
            both.map(|(w, std)| log_normal(w.as_f64(), 0.0, std.as_f64()))
                .sum()
        })
    }
}

/// The logarithm of the normal density.
pub(super) fn log_normal(w: f64, mean: f64, std: f64) -> f64 {
    let standard = (w - mean) / std;
    normal::ln_density(standard) - std.ln()
}
