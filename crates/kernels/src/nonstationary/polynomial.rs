//! The polynomial kernel.

use super::linear::{Linear, LinearConfig};
use crate::Error;
use crate::kernel::{Along, GramGradients, Kernel, Parameter, check_cotangent, check_values};
use crate::lengthscale::Lengthscale;
use bochner_numerics::Real;
use bochner_numerics::argument::{self, ArgumentError};
use bochner_numerics::scaling::bounded;
use ndarray::{Array1, Array2, ArrayView2};
use serde::{Deserialize, Serialize};

/// The polynomial kernel.
///
/// $$k(x, y) = \Bigl(\sum_n \frac{x_n y_n}{l_n^2} + c\Bigr)^p$$
///
/// *where* $l_n > 0$ is the [`Lengthscale`], $c > 0$ the `offset` and $p \ge 1$ the `degree`, which is no
/// hyper-parameter. It is the covariance of polynomials of degree $p$ with normal coefficients.
///
/// # Numerics
/// One matrix product. Entries may overflow to infinity; where sums of such terms would be NaN, the points
/// are refused.
///
/// # Reference
/// Rasmussen, Williams, *Gaussian Processes for Machine Learning*, 2006, section 4.2.2.
///
/// # Example
/// ```
/// use bochner_kernels::{Kernel, Lengthscale, PolynomialConfig};
/// use bochner_kernels::ndarray::array;
///
/// let lengthscale = Lengthscale::Shared(1.0);
/// let kernel = PolynomialConfig { lengthscale, offset: 0.5, degree: 3 }.build()?;
/// assert_eq!(kernel.value(array![1.0].view(), array![1.5].view())?, 8.0);
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "PolynomialConfig<T>", into = "PolynomialConfig<T>")]
#[serde(bound(
    serialize = "T: Real + Serialize",
    deserialize = "T: Real + Deserialize<'de>"
))]
pub struct Polynomial<T: Real> {
    linear: Linear<T>,
    offset: T,
    degree: i32,
}

/// The settings of a [`Polynomial`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
#[serde(bound(
    serialize = "T: Real + Serialize",
    deserialize = "T: Real + Deserialize<'de>"
))]
pub struct PolynomialConfig<T> {
    /// The lengthscales, positive.
    pub lengthscale: Lengthscale<T>,
    /// The number that is added to the product of the points, positive.
    pub offset: T,
    /// The degree, from 1 to 64.
    pub degree: usize,
}

bochner_numerics::checked_when_read!(PolynomialConfig<T: Real>);

impl<T: Real> PolynomialConfig<T> {
    /// The kernel of these settings.
    ///
    /// # Errors
    /// [`Error::Argument`] unless the offset and every lengthscale are finite and positive with a finite
    /// $1/l_n^2$, for a degree outside its range, or if there is no lengthscale.
    pub fn build(self) -> Result<Polynomial<T>, Error> {
        self.validate()?;
        let lengthscale = self.lengthscale;
        Ok(Polynomial {
            linear: LinearConfig { lengthscale }.build()?,
            offset: self.offset,
            degree: self.degree as i32,
        })
    }

    fn validate(&self) -> Result<(), ArgumentError> {
        self.lengthscale.check()?;
        argument::positive("offset", self.offset)?;
        let holds = (1..=64).contains(&self.degree);
        argument::in_range(holds, "degree", self.degree as f64, "from 1 to 64")
    }
}

impl<T: Real> From<Polynomial<T>> for PolynomialConfig<T> {
    fn from(kernel: Polynomial<T>) -> Self {
        Self {
            lengthscale: kernel.linear.lengthscale().clone(),
            offset: kernel.offset,
            degree: kernel.degree as usize,
        }
    }
}

impl<T: Real> TryFrom<PolynomialConfig<T>> for Polynomial<T> {
    type Error = Error;

    fn try_from(config: PolynomialConfig<T>) -> Result<Self, Error> {
        config.build()
    }
}

impl<T: Real> Kernel<T> for Polynomial<T> {
    fn gram(&self, x: ArrayView2<T>, y: ArrayView2<T>) -> Result<Array2<T>, Error> {
        let products = self.linear.gram(x, y)?;
        Ok(products.mapv_into(|p| (p + self.offset).powi(self.degree)))
    }

    fn gram_vjp_along(
        &self,
        along: Along,
        x: ArrayView2<T>,
        y: ArrayView2<T>,
        cotangent: ArrayView2<T>,
    ) -> Result<GramGradients<T>, Error> {
        check_cotangent(&x, &y, &cotangent)?;
        let mut weights = self.linear.gram(x, y)?;
        let degree = T::of(f64::from(self.degree));
        weights.zip_mut_with(&cotangent, |p, &g| {
            let slope = bounded(degree * (*p + self.offset).powi(self.degree - 1));
            *p = bounded(slope * g);
        });
        let along_offset = weights.iter().copied().map(bounded).sum();
        let mut gradients = (self.linear).gram_vjp_along(along, x, y, weights.view())?;
        gradients.parameters.push(bounded(along_offset));
        Ok(gradients)
    }

    fn diagonal(&self, x: ArrayView2<T>) -> Result<Array1<T>, Error> {
        let squares = self.linear.diagonal(x)?;
        Ok(squares.mapv_into(|p| (p + self.offset).powi(self.degree)))
    }

    fn parameters(&self) -> Vec<Parameter<T>> {
        let mut parameters = self.linear.parameters();
        parameters.push(Parameter::positive("offset", self.offset));
        parameters
    }

    fn set_parameters(&mut self, values: &[T]) -> Result<(), Error> {
        check_values(&self.parameters(), values)?;
        let (offset, lengthscales) = values.split_last().expect("a value for the offset");
        self.linear.set_parameters(lengthscales)?;
        self.offset = *offset;
        Ok(())
    }
}
