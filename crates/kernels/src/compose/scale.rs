//! A multiple of a kernel.

use super::within;
use crate::kernel::{Along, GramGradients, Kernel, Parameter, check_values};
use crate::written::written_as_config;
use crate::{AnyKernel, Error};
use bochner_numerics::Real;
use bochner_numerics::argument;
use bochner_numerics::scaling::bounded;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use serde::{Deserialize, Serialize};

/// A multiple of a kernel, $k = v k_0$.
///
/// *where* $v > 0$ is the `variance`, the first parameter; those of $k_0$ follow as `base.name`.
///
/// # Example
/// ```
/// use bochner_kernels::{Kernel, Lengthscale, RbfConfig, ScaleConfig};
/// use bochner_kernels::ndarray::array;
///
/// let base = RbfConfig { lengthscale: Lengthscale::Shared(1.0) }.build()?;
/// let kernel = ScaleConfig { variance: 3.0, base: base.into() }.build()?;
/// let x = array![0.5];
/// assert_eq!(kernel.value(x.view(), x.view())?, 3.0);
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "ScaleConfig<T>", into = "ScaleConfig<T>")]
#[serde(bound(
    serialize = "T: Real + Serialize",
    deserialize = "T: Real + Deserialize<'de>"
))]
pub struct Scale<T: Real> {
    variance: T,
    base: AnyKernel<T>,
}

/// The settings of a [`Scale`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(bound(
    serialize = "T: Real + Serialize",
    deserialize = "T: Real + Deserialize<'de>"
))]
pub struct ScaleConfig<T: Real> {
    /// The factor; positive.
    pub variance: T,
    /// The kernel that is multiplied.
    pub base: AnyKernel<T>,
}

written_as_config!(Scale, ScaleConfig, variance, base);

impl<T: Real> ScaleConfig<T> {
    /// The kernel of these settings.
    ///
    /// # Errors
    /// [`Error::Argument`] unless the variance is finite and positive.
    pub fn build(self) -> Result<Scale<T>, Error> {
        argument::positive("variance", self.variance)?;
        Ok(Scale {
            variance: self.variance,
            base: self.base,
        })
    }
}

impl<T: Real> Scale<T> {
    fn along_variance(
        &self,
        x: ArrayView2<T>,
        y: ArrayView2<T>,
        cotangent: &ArrayView2<T>,
    ) -> Result<T, Error> {
        let base = self.base.gram(x, y)?;
        Ok(base
            .iter()
            .zip(cotangent)
            .map(|(&k, &g)| bounded(bounded(k) * g))
            .sum())
    }
}

impl<T: Real> Kernel<T> for Scale<T> {
    fn gram(&self, x: ArrayView2<T>, y: ArrayView2<T>) -> Result<Array2<T>, Error> {
        let base = self.base.gram(x, y)?;
        Ok(base.mapv_into(|k| self.variance * k))
    }

    fn gram_vjp_along(
        &self,
        along: Along,
        x: ArrayView2<T>,
        y: ArrayView2<T>,
        cotangent: ArrayView2<T>,
    ) -> Result<GramGradients<T>, Error> {
        let scaled = cotangent.mapv(|g| bounded(self.variance * g));
        let mut gradients = self.base.gram_vjp_along(along, x, y, scaled.view())?;
        let along_variance = self.along_variance(x, y, &cotangent)?;
        gradients.parameters.insert(0, along_variance);
        Ok(gradients)
    }

    fn diagonal(&self, x: ArrayView2<T>) -> Result<Array1<T>, Error> {
        Ok(self.base.diagonal(x)?.mapv_into(|k| self.variance * k))
    }

    fn diagonal_vjp(&self, x: ArrayView2<T>, cotangent: ArrayView1<T>) -> Result<Vec<T>, Error> {
        let base = self.base.diagonal(x)?;
        let along_variance = base.iter().zip(&cotangent);
        let along_variance = along_variance.map(|(&k, &g)| bounded(bounded(k) * g)).sum();
        let scaled = cotangent.mapv(|g| bounded(self.variance * g));
        let mut gradient = vec![along_variance];
        gradient.extend(self.base.diagonal_vjp(x, scaled.view())?);
        Ok(gradient)
    }

    fn check_positive_semi_definite(&self, width: usize) -> Result<(), Error> {
        self.base.check_positive_semi_definite(width)
    }

    fn parameters(&self) -> Vec<Parameter<T>> {
        let mut parameters = vec![Parameter::positive("variance", self.variance)];
        parameters.extend(within("base", &self.base));
        parameters
    }

    fn set_parameters(&mut self, values: &[T]) -> Result<(), Error> {
        check_values(&self.parameters(), values)?;
        self.base.set_parameters(&values[1..])?;
        self.variance = values[0];
        Ok(())
    }
}
