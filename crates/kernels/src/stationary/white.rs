//! White noise.

use super::distance;
use crate::Error;
use crate::kernel::{
    Along, GramGradients, Kernel, Parameter, check_cotangent, check_values, common_width,
};
use crate::written::written_as_config;
use bochner_numerics::Real;
use bochner_numerics::argument::{self, ArgumentError};
use bochner_numerics::scaling::bounded;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use serde::{Deserialize, Serialize};

/// White noise: $k(x, y) = v$ where $x = y$, and zero elsewhere.
///
/// *where* $v > 0$ is the `variance`. Inputs that are equal in every column share its value. The independent noise
/// of every observation, repeated ones too, is a setting of a Gaussian process and no kernel.
///
/// # Numerics
/// The gradient along the inputs is zero.
///
/// # Reference
/// scikit-learn's `WhiteKernel` is the same where no input repeats.
///
/// # Example
/// ```
/// use bochner_kernels::{Kernel, WhiteConfig};
/// use bochner_kernels::ndarray::array;
///
/// let kernel = WhiteConfig { variance: 0.5 }.build()?;
/// let k = kernel.gram(array![[1.0], [2.0]].view(), array![[2.0], [3.0]].view())?;
/// assert_eq!(k, array![[0.0, 0.0], [0.5, 0.0]]);
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "WhiteConfig<T>", into = "WhiteConfig<T>")]
#[serde(bound(
    serialize = "T: Real + Serialize",
    deserialize = "T: Real + Deserialize<'de>"
))]
pub struct White<T: Real> {
    variance: T,
}

/// The settings of a [`White`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct WhiteConfig<T> {
    /// The variance, positive.
    pub variance: T,
}

bochner_numerics::checked_when_read!(WhiteConfig<T: Real>);
written_as_config!(White, WhiteConfig, variance);

impl<T: Real> WhiteConfig<T> {
    /// The kernel of these settings.
    ///
    /// # Errors
    /// [`Error::Argument`] unless the variance is finite and positive.
    pub fn build(self) -> Result<White<T>, Error> {
        self.validate()?;
        let variance = self.variance;
        Ok(White { variance })
    }

    fn validate(&self) -> Result<(), ArgumentError> {
        argument::positive("variance", self.variance)
    }
}

impl<T: Real> Kernel<T> for White<T> {
    fn gram(&self, x: ArrayView2<T>, y: ArrayView2<T>) -> Result<Array2<T>, Error> {
        distance::gram_of_gaps(x, y, |gap| {
            if gap == T::zero() {
                self.variance
            } else if gap.is_nan() {
                gap
            } else {
                T::zero()
            }
        })
    }

    fn gram_vjp_along(
        &self,
        along: Along,
        x: ArrayView2<T>,
        y: ArrayView2<T>,
        cotangent: ArrayView2<T>,
    ) -> Result<GramGradients<T>, Error> {
        check_cotangent(&x, &y, &cotangent)?;
        let terms = self.gram(x, y)?;
        let terms = terms.iter().zip(&cotangent);
        let sum: T = terms.map(|(&k, &g)| bounded(k / self.variance * g)).sum();
        let [x, y] = [&x, &y].map(|points| along.zeros(points));
        let parameters = vec![sum];
        Ok(GramGradients { x, y, parameters })
    }

    fn diagonal(&self, x: ArrayView2<T>) -> Result<Array1<T>, Error> {
        common_width(&x, &x)?;
        Ok(distance::diagonal(x, self.variance))
    }

    fn diagonal_vjp(&self, x: ArrayView2<T>, cotangent: ArrayView1<T>) -> Result<Vec<T>, Error> {
        argument::shape("cotangent", &[x.nrows()], cotangent.shape())?;
        Ok(vec![bounded(cotangent.sum())])
    }

    fn parameters(&self) -> Vec<Parameter<T>> {
        vec![Parameter::positive("variance", self.variance)]
    }

    fn set_parameters(&mut self, values: &[T]) -> Result<(), Error> {
        check_values(&self.parameters(), values)?;
        self.variance = values[0];
        Ok(())
    }
}
