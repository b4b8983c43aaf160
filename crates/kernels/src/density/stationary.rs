//! From a stationary kernel to its density.

use super::{GaussianDensity, MixtureDensity, SpectralDensity, StudentTDensity};
use crate::Error;
use crate::kernel::Kernel;
use crate::lengthscale::Lengthscale;
use crate::stationary::{Matern, Rbf, SpectralMixture};
use bochner_numerics::Real;
use bochner_numerics::argument::{self, ArgumentError};

/// A kernel of the difference alone whose spectral density has a closed form.
///
/// [`Expsin`](crate::Expsin) is not one: its spectrum is discrete, and has no density. Compositions are not
/// either: the features of a multiple have its `variance` for a factor, those of a sum are the features of
/// its parts side by side.
///
/// # Example
/// ```
/// use bochner_kernels::{Lengthscale, MaternConfig, SpectralDensity, Smoothness, Stationary};
/// use bochner_kernels::ndarray::Array2;
///
/// let lengthscale = Lengthscale::Shared(0.5_f64);
/// let kernel = MaternConfig { smoothness: Smoothness::Half, lengthscale }.build()?;
/// let density = kernel.density(3)?;
/// let origin = density.log_density(Array2::zeros((1, 3)).view())?[0];
/// assert!((origin.exp() - (0.5 / std::f64::consts::PI).powi(2) / 2.0).abs() < 1e-12);
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
pub trait Stationary<T: Real>: Kernel<T> {
    /// $k(x, x)$, the same for all $x$.
    fn variance(&self) -> T;

    /// The density of frequencies of $k / k(x, x)$ on $\mathbb{R}^d$, for `width` $d$.
    ///
    /// # Errors
    /// [`Error::Argument`] if the kernel's parameters are for another width,
    /// or if it is zero.
    fn density(&self, width: usize) -> Result<Box<dyn SpectralDensity<T>>, Error>;
}

impl<T: Real> Stationary<T> for Rbf<T> {
    fn variance(&self) -> T {
        T::one()
    }

    /// The Gaussian of standard deviations $1 / l_n$.
    fn density(&self, width: usize) -> Result<Box<dyn SpectralDensity<T>>, Error> {
        let std = scales(self.lengthscale(), width)?;
        Ok(Box::new(GaussianDensity::new(std)?))
    }
}

impl<T: Real> Stationary<T> for Matern<T> {
    fn variance(&self) -> T {
        T::one()
    }

    /// Student's t of $2 \nu$ degrees of freedom and scales $1 / l_n$.
    fn density(&self, width: usize) -> Result<Box<dyn SpectralDensity<T>>, Error> {
        let scale = scales(self.lengthscale(), width)?;
        let degrees = self.smoothness().doubled();
        Ok(Box::new(StudentTDensity::new(degrees, scale)?))
    }
}

impl<T: Real> Stationary<T> for SpectralMixture<T> {
    /// The sum of the weights.
    fn variance(&self) -> T {
        self.settings().weights.iter().copied().sum()
    }

    fn density(&self, width: usize) -> Result<Box<dyn SpectralDensity<T>>, Error> {
        let own = self.settings().means.ncols();
        argument::shape("width", &[own], &[width])?;
        Ok(Box::new(MixtureDensity::of(self)))
    }
}

/// The density whose *squared* random features give the RBF kernel (Proposition 3).
///
/// $$w \sim N\bigl(0, \operatorname{diag}(1 / (2 l_n^2))\bigr): \qquad
/// f_S \to \exp\Bigl(-\frac14 \sum_n \frac{t_n^2}{l_n^2}\Bigr), \qquad
/// f_S^2 \to \exp\Bigl(-\frac12 \sum_n \frac{t_n^2}{l_n^2}\Bigr)$$
///
/// The square of a kernel is a kernel, and never negative: attention needs the second, Monte Carlo
/// alone promises the first only. With $l^2 = \sqrt d$ it is the similarity of softmax attention.
///
/// # Errors
/// The errors of [`Stationary::density`].
///
/// # Numerics
/// At finite $R$, $f_S^2$ is larger on average than its limit by $f_S$'s variance, about
/// $1 / (2R)$ at a distance.
///
/// # Reference
/// Song, Jung, Kim, Moon, *Implicit Kernel Attention*, AAAI 2021, Proposition 3.
pub fn squared_rbf_density<T: Real>(
    kernel: &Rbf<T>,
    width: usize,
) -> Result<GaussianDensity<T>, Error> {
    let std = scales(kernel.lengthscale(), width)?.into_iter();
    GaussianDensity::new(std.map(|s| s * T::FRAC_1_SQRT_2()).collect())
}

/// $1 / l_n$.
pub(super) fn scales<T: Real>(
    lengthscale: &Lengthscale<T>,
    width: usize,
) -> Result<Vec<T>, ArgumentError> {
    argument::at_least_one("width", width)?;
    if let Lengthscale::PerDimension(values) = lengthscale {
        argument::shape("width", &[values.len()], &[width])?;
    }
    lengthscale.inverse(1, width)
}
