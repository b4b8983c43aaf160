//! The radial basis function, or squared exponential.

use super::distance;
use crate::Error;
use crate::kernel::{Along, GramGradients, Kernel, Parameter, check_values};
use crate::lengthscale::Lengthscale;
use crate::written::written_as_config;
use bochner_numerics::Real;
use bochner_numerics::elementary::exp_in_place;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use serde::{Deserialize, Serialize};

/// The radial basis function kernel.
///
/// $$k(x, y) = \exp\Bigl(-\frac12 \sum_n \frac{(x_n - y_n)^2}{l_n^2}\Bigr)$$
///
/// *where* $l_n > 0$ is the [`Lengthscale`].
///
/// # Numerics
/// The distance is summed from differences, so that a small one keeps its digits far from the
/// origin; $O(N N' d)$ time.
///
/// # Reference
/// Rasmussen, Williams, *Gaussian Processes for Machine Learning*, 2006, equation 4.9.
///
/// # Example
/// ```
/// use bochner_kernels::{Kernel, Lengthscale, RbfConfig};
/// use bochner_kernels::ndarray::array;
///
/// let kernel = RbfConfig { lengthscale: Lengthscale::Shared(2.0) }.build()?;
/// let k = kernel.value(array![0.0, 3.0].view(), array![4.0, 0.0].view())?;
/// assert!((k - (-25.0_f64 / 8.0).exp()).abs() < 1e-15);
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RbfConfig<T>", into = "RbfConfig<T>")]
#[serde(bound(
    serialize = "T: Real + Serialize",
    deserialize = "T: Real + Deserialize<'de>"
))]
pub struct Rbf<T: Real> {
    lengthscale: Lengthscale<T>,
}

/// The settings of an [`Rbf`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(bound(
    serialize = "T: Real + Serialize",
    deserialize = "T: Real + Deserialize<'de>"
))]
pub struct RbfConfig<T> {
    /// The lengthscales, positive.
    pub lengthscale: Lengthscale<T>,
}

written_as_config!(Rbf, RbfConfig, lengthscale);

impl<T: Real> RbfConfig<T> {
    /// The kernel of these settings.
    ///
    /// # Errors
    /// [`Error::Argument`] unless every lengthscale is finite and positive, or if
    /// there is none.
    pub fn build(self) -> Result<Rbf<T>, Error> {
        self.lengthscale.check()?;
        Ok(Rbf {
            lengthscale: self.lengthscale,
        })
    }
}

impl<T: Real> Rbf<T> {
    /// The lengthscales.
    pub fn lengthscale(&self) -> &Lengthscale<T> {
        &self.lengthscale
    }
}

impl<T: Real> Kernel<T> for Rbf<T> {
    fn gram(&self, x: ArrayView2<T>, y: ArrayView2<T>) -> Result<Array2<T>, Error> {
        distance::gram(x, y, &self.lengthscale, profile)
    }

    fn gram_vjp_along(
        &self,
        along: Along,
        x: ArrayView2<T>,
        y: ArrayView2<T>,
        cotangent: ArrayView2<T>,
    ) -> Result<GramGradients<T>, Error> {
        distance::gram_vjp(along, x, y, &self.lengthscale, cotangent, |s, _| slope(s))
    }

    fn diagonal(&self, x: ArrayView2<T>) -> Result<Array1<T>, Error> {
        distance::unit_diagonal(x, &self.lengthscale)
    }

    fn diagonal_vjp(&self, x: ArrayView2<T>, cotangent: ArrayView1<T>) -> Result<Vec<T>, Error> {
        distance::constant_diagonal_vjp(self, x, cotangent)
    }

    fn parameters(&self) -> Vec<Parameter<T>> {
        self.lengthscale.parameters()
    }

    fn set_parameters(&mut self, values: &[T]) -> Result<(), Error> {
        check_values(&self.parameters(), values)?;
        self.lengthscale.assign(values);
        Ok(())
    }
}

/// Replaces squared distances by the kernel there.
fn profile<T: Real>(s: &mut [T]) {
    s.iter_mut().for_each(|s| *s *= -T::of(0.5));
    exp_in_place(s);
}

/// Replaces squared distances by the kernel's derivatives along them.
fn slope<T: Real>(s: &mut [T]) {
    profile(s);
    s.iter_mut().for_each(|k| *k *= -T::of(0.5));
}
