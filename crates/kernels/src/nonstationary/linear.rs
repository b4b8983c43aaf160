//! The linear kernel.

use crate::Error;
use crate::kernel::{
    Along, GramGradients, Kernel, Parameter, check_cotangent, check_values, common_width,
};
use crate::lengthscale::Lengthscale;
use crate::matrix::{mat, product};
use crate::written::written_as_config;
use bochner_numerics::Real;
use bochner_numerics::argument::{self, ArgumentError};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use serde::{Deserialize, Serialize};

/// The linear kernel.
///
/// $$k(x, y) = \sum_n \frac{x_n y_n}{l_n^2}$$
///
/// *where* $l_n > 0$ is the [`Lengthscale`]. It is the covariance of linear functions whose slopes
/// have the standard deviations $1 / l_n$.
///
/// # Numerics
/// One matrix product of the scaled points. The diagonal is never negative. Entries may overflow to infinity; where
/// sums of such terms would be NaN, the points are refused.
///
/// # Reference
/// Rasmussen, Williams, *Gaussian Processes for Machine Learning*, 2006, section 4.2.2.
///
/// # Example
/// ```
/// use bochner_kernels::{Kernel, Lengthscale, LinearConfig};
/// use bochner_kernels::ndarray::array;
///
/// let kernel = LinearConfig { lengthscale: Lengthscale::Shared(2.0) }.build()?;
/// let k = kernel.value(array![1.0, 3.0].view(), array![4.0, -2.0].view())?;
/// assert_eq!(k, -0.5);
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "LinearConfig<T>", into = "LinearConfig<T>")]
#[serde(bound(
    serialize = "T: Real + Serialize",
    deserialize = "T: Real + Deserialize<'de>"
))]
pub struct Linear<T: Real> {
    lengthscale: Lengthscale<T>,
}

/// The settings of a [`Linear`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(bound(
    serialize = "T: Real + Serialize",
    deserialize = "T: Real + Deserialize<'de>"
))]
pub struct LinearConfig<T> {
    /// The lengthscales, positive.
    pub lengthscale: Lengthscale<T>,
}

written_as_config!(Linear, LinearConfig, lengthscale);

impl<T: Real> LinearConfig<T> {
    /// The kernel of these settings.
    ///
    /// # Errors
    /// [`Error::Argument`] unless every lengthscale is finite and positive with a finite $1/l_n^2$, or if
    /// there is none.
    pub fn build(self) -> Result<Linear<T>, Error> {
        self.lengthscale.check()?;
        check_variances(&self.lengthscale)?;
        Ok(Linear {
            lengthscale: self.lengthscale,
        })
    }
}

impl<T: Real> Linear<T> {
    /// The lengthscales.
    pub fn lengthscale(&self) -> &Lengthscale<T> {
        &self.lengthscale
    }

    /// The gradient along the lengthscales from scaled inputs and the gradient along them.
    fn along_parameters(&self, x: &Array2<T>, along_x: &Array2<T>, inverse: &[T]) -> Vec<T> {
        let columns = x.columns().into_iter().zip(along_x.columns());
        let along_scale = columns.zip(inverse).map(|((x, g), &i)| {
            let sum: T = x.iter().zip(g).map(|(&x, &g)| x * g).sum();
            -T::of(2.0) * i * sum
        });
        self.lengthscale.gather(along_scale.collect())
    }
}

impl<T: Real> Kernel<T> for Linear<T> {
    fn gram(&self, x: ArrayView2<T>, y: ArrayView2<T>) -> Result<Array2<T>, Error> {
        let width = common_width(&x, &y)?;
        let inverse = self.lengthscale.inverse(x.nrows(), width)?;
        let (left, right) = (scaled(x, &inverse), scaled(y, &inverse));
        let k = product(T::one(), mat(&left), mat(&right).t());
        refuse_nan(&k, &[x, y])?;
        Ok(k)
    }

    fn gram_vjp_along(
        &self,
        along: Along,
        x: ArrayView2<T>,
        y: ArrayView2<T>,
        cotangent: ArrayView2<T>,
    ) -> Result<GramGradients<T>, Error> {
        let width = common_width(&x, &y)?;
        check_cotangent(&x, &y, &cotangent)?;
        let inverse = self.lengthscale.inverse(x.nrows(), width)?;
        let given = [x, y, cotangent];
        let (x, y) = (scaled(x, &inverse), scaled(y, &inverse));
        let cotangent = cotangent.as_standard_layout().into_owned();
        let along_x = product(T::one(), mat(&cotangent), mat(&y));
        let parameters = self.along_parameters(&x, &along_x, &inverse);
        refuse_nan(along_x.iter().chain(&parameters), &given)?;
        if along == Along::Parameters {
            let [x, y] = [&x, &y].map(|points| along.zeros(&points.view()));
            return Ok(GramGradients { x, y, parameters });
        }
        let along_y = product(T::one(), mat(&cotangent).t(), mat(&x));
        refuse_nan(&along_y, &given)?;
        Ok(GramGradients {
            parameters,
            x: scaled(along_x.view(), &inverse),
            y: scaled(along_y.view(), &inverse),
        })
    }

    fn diagonal(&self, x: ArrayView2<T>) -> Result<Array1<T>, Error> {
        let width = common_width(&x, &x)?;
        let x = scaled(x, &self.lengthscale.inverse(x.nrows(), width)?);
        let rows = x.rows().into_iter();
        Ok(rows.map(|x| x.dot(&x)).collect())
    }

    fn parameters(&self) -> Vec<Parameter<T>> {
        self.lengthscale.parameters()
    }

    fn set_parameters(&mut self, values: &[T]) -> Result<(), Error> {
        check_values(&self.parameters(), values)?;
        let mut lengthscale = self.lengthscale.clone();
        lengthscale.assign(values);
        check_variances(&lengthscale)?;
        self.lengthscale = lengthscale;
        Ok(())
    }
}

/// Refuses lengthscales so small that the variance of a slope, $1/l^2$, overflows.
fn check_variances<T: Real>(lengthscale: &Lengthscale<T>) -> Result<(), ArgumentError> {
    let least = T::max_value().sqrt().recip();
    let allowed = format!("at least {least:.1e}, so that 1 / lengthscale^2 is finite");
    let mut parameters = lengthscale.parameters().into_iter();
    parameters.try_for_each(|p| {
        let inverse = p.value.recip();
        argument::in_range(
            (inverse * inverse).is_finite(),
            p.name,
            p.value,
            allowed.clone(),
        )
    })
}

/// Refuses a NaN that finite arguments led to: a sum of both infinities, or infinity times zero.
fn refuse_nan<'a, T: Real>(
    results: impl IntoIterator<Item = &'a T>,
    given: &[ArrayView2<T>],
) -> Result<(), ArgumentError> {
    let has_nan = results.into_iter().any(|x| x.is_nan());
    if !has_nan || given.iter().any(|x| x.iter().any(|x| !x.is_finite())) {
        return Ok(());
    }
    let (name, got) = ("x . y / lengthscale^2", T::nan());
    let allowed =
        "a number, but terms of its sum overflow: scale the points down, or the lengthscale up";
    Err(argument::out_of_range(name, got, allowed))
}

/// Each column times its factor, in row-major order.
fn scaled<T: Real>(x: ArrayView2<T>, factors: &[T]) -> Array2<T> {
    let mut x = x.as_standard_layout().into_owned();
    x *= &ArrayView1::from(factors);
    x
}
