//! The rational quadratic kernel: radial basis functions of many lengthscales.

use super::distance;
use crate::Error;
use crate::kernel::{Along, GramGradients, Kernel, Parameter, check_values};
use crate::lengthscale::Lengthscale;
use crate::written::written_as_config;
use bochner_numerics::Real;
use bochner_numerics::argument::{self, ArgumentError};
use bochner_numerics::elementary::{exp_in_place, ln_in_place};
use bochner_numerics::scaling::bounded;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use serde::{Deserialize, Serialize};

/// The rational quadratic kernel.
///
/// $$k(x, y) = \Bigl(1 + \frac{s}{2 \alpha}\Bigr)^{-\alpha}, \qquad s = \sum_n \frac{(x_n - y_n)^2}{l_n^2}$$
///
/// *where* $l_n > 0$ is the [`Lengthscale`] and $\alpha > 0$ the `alpha`. It is a mixture of radial basis
/// functions whose inverse squared lengthscales have a gamma distribution of shape $\alpha$, and tends to
/// the radial basis function as $\alpha$ grows.
///
/// # Numerics
/// The power is taken as $\exp(-\alpha \operatorname{log1p}(s / 2 \alpha))$, which keeps its digits where
/// $\alpha$ is large.
///
/// # Reference
/// Rasmussen, Williams, *Gaussian Processes for Machine Learning*, 2006, equation 4.19.
///
/// # Example
/// ```
/// use bochner_kernels::{Kernel, Lengthscale, RationalQuadraticConfig};
/// use bochner_kernels::ndarray::array;
///
/// let lengthscale = Lengthscale::Shared(2.0);
/// let kernel = RationalQuadraticConfig { lengthscale, alpha: 0.5 }.build()?;
/// let k = kernel.value(array![0.0, 3.0].view(), array![4.0, 0.0].view())?;
/// assert!((k - 7.25_f64.powf(-0.5)).abs() < 1e-15);
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    try_from = "RationalQuadraticConfig<T>",
    into = "RationalQuadraticConfig<T>"
)]
#[serde(bound(
    serialize = "T: Real + Serialize",
    deserialize = "T: Real + Deserialize<'de>"
))]
pub struct RationalQuadratic<T: Real> {
    lengthscale: Lengthscale<T>,
    alpha: T,
}

/// The settings of a [`RationalQuadratic`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
#[serde(bound(
    serialize = "T: Real + Serialize",
    deserialize = "T: Real + Deserialize<'de>"
))]
pub struct RationalQuadraticConfig<T> {
    /// The lengthscales, positive.
    pub lengthscale: Lengthscale<T>,
    /// The weight of short lengthscales against long ones, positive. Small values mix more of them.
    pub alpha: T,
}

bochner_numerics::checked_when_read!(RationalQuadraticConfig<T: Real>);
written_as_config!(
    RationalQuadratic,
    RationalQuadraticConfig,
    lengthscale,
    alpha
);

impl<T: Real> RationalQuadraticConfig<T> {
    /// The kernel of these settings.
    ///
    /// # Errors
    /// [`Error::Argument`] unless `alpha` and every lengthscale are finite and positive, or if there is no
    /// lengthscale.
    pub fn build(self) -> Result<RationalQuadratic<T>, Error> {
        self.validate()?;
        let Self { lengthscale, alpha } = self;
        Ok(RationalQuadratic { lengthscale, alpha })
    }

    fn validate(&self) -> Result<(), ArgumentError> {
        self.lengthscale.check()?;
        argument::positive("alpha", self.alpha)
    }
}

impl<T: Real> RationalQuadratic<T> {
    /// Replaces squared distances $s$ by the kernel there, and returns $u = s / 2 \alpha$ and $\ln (1 + u)$ of each.
    fn profile(&self, s: &mut [T]) -> [Vec<T>; 2] {
        let u: Vec<T> = s.iter().map(|&s| s / (T::of(2.0) * self.alpha)).collect();
        let mut logarithms: Vec<T> = u.iter().map(|&u| T::one() + u).collect();
        ln_in_place(&mut logarithms);
        for ((logarithm, &u), s) in logarithms.iter_mut().zip(&u).zip(&mut *s) {
            // Makes up for the rounding of 1 + u.
            let kept = (T::one() + u) - T::one();
            if kept == T::zero() {
                *logarithm = u;
            } else if kept.is_finite() {
                *logarithm *= u / kept;
            }
            *s = -self.alpha * *logarithm;
        }
        exp_in_place(s);
        [u, logarithms]
    }

    /// Replaces squared distances by the kernel's derivatives along them, and returns the gradient along `alpha`.
    fn slope(&self, s: &mut [T], cotangents: &[T]) -> T {
        let [u, logarithms] = self.profile(s);
        let mut along_alpha = T::zero();
        for (((s, u), logarithm), &g) in s.iter_mut().zip(u).zip(logarithms).zip(cotangents) {
            let k = *s;
            *s = -T::of(0.5) * k / (T::one() + u);
            if k != T::zero() {
                // The two terms cancel where u is small.
                let series = -u * u * (T::of(0.5) - u * (T::of(2.0 / 3.0) - u * T::of(0.75)));
                let difference = match u < T::of(1e-3) {
                    true => series,
                    false => u / (T::one() + u) - logarithm,
                };
                along_alpha += bounded(k * difference * g);
            }
        }
        along_alpha
    }
}

impl<T: Real> Kernel<T> for RationalQuadratic<T> {
    fn gram(&self, x: ArrayView2<T>, y: ArrayView2<T>) -> Result<Array2<T>, Error> {
        distance::gram(x, y, &self.lengthscale, |s| {
            self.profile(s);
        })
    }

    fn gram_vjp_along(
        &self,
        along: Along,
        x: ArrayView2<T>,
        y: ArrayView2<T>,
        cotangent: ArrayView2<T>,
    ) -> Result<GramGradients<T>, Error> {
        let mut along_alpha = T::zero();
        let slope = |s: &mut [T], g: &[T]| along_alpha += self.slope(s, g);
        let mut gradients = distance::gram_vjp(along, x, y, &self.lengthscale, cotangent, slope)?;
        gradients.parameters.push(along_alpha);
        Ok(gradients)
    }

    fn diagonal(&self, x: ArrayView2<T>) -> Result<Array1<T>, Error> {
        distance::unit_diagonal(x, &self.lengthscale)
    }

    fn diagonal_vjp(&self, x: ArrayView2<T>, cotangent: ArrayView1<T>) -> Result<Vec<T>, Error> {
        distance::constant_diagonal_vjp(self, x, cotangent)
    }

    fn parameters(&self) -> Vec<Parameter<T>> {
        let mut parameters = self.lengthscale.parameters();
        parameters.push(Parameter::positive("alpha", self.alpha));
        parameters
    }

    fn set_parameters(&mut self, values: &[T]) -> Result<(), Error> {
        check_values(&self.parameters(), values)?;
        let (alpha, lengthscales) = values.split_last().expect("a value for alpha");
        self.lengthscale.assign(lengthscales);
        self.alpha = *alpha;
        Ok(())
    }
}
