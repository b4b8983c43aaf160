//! The sum of kernels.

use super::Parts;
use crate::kernel::{Along, GramGradients, Kernel, Parameter};
use crate::{AnyKernel, Error};
use bochner_numerics::Real;
use bochner_numerics::scaling::bounded;
use ndarray::{Array, Array1, Array2, ArrayRef, ArrayView1, ArrayView2, Dimension};
use serde::{Deserialize, Serialize};

/// The sum of kernels, $k = \sum_i k_i$: two points are alike if one part finds them so.
///
/// The operator `+` makes one. The parameters of part `i` are called `i.name`.
///
/// # Example
/// ```
/// use bochner_kernels::{ExpsinConfig, Kernel, Lengthscale, LinearConfig};
/// use bochner_kernels::ndarray::array;
///
/// let season = ExpsinConfig { period: 12.0, lengthscale: Lengthscale::Shared(1.0) }.build()?;
/// let trend = LinearConfig { lengthscale: Lengthscale::Shared(10.0) }.build()?;
/// let kernel = season + trend;
/// let k = kernel.value(array![12.0].view(), array![24.0].view())?;
/// assert!((k - (1.0 + 2.88_f64)).abs() < 1e-12);
///
/// let names: Vec<_> = kernel.parameters().into_iter().map(|p| p.name).collect();
/// assert_eq!(names, ["0.period", "0.lengthscale", "1.lengthscale"]);
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
#[serde(bound(
    serialize = "T: Real + Serialize",
    deserialize = "T: Real + Deserialize<'de>"
))]
pub struct Sum<T: Real> {
    parts: Parts<T>,
}

impl<T: Real> Sum<T> {
    /// The sum of these kernels.
    ///
    /// # Errors
    /// [`Error::Argument`] if there is none.
    pub fn new(parts: Vec<AnyKernel<T>>) -> Result<Self, Error> {
        let parts = Parts::new(parts)?;
        Ok(Self { parts })
    }

    /// The kernels that are added.
    pub fn parts(&self) -> &[AnyKernel<T>] {
        &self.parts.0
    }
}

impl<T: Real> Kernel<T> for Sum<T> {
    fn gram(&self, x: ArrayView2<T>, y: ArrayView2<T>) -> Result<Array2<T>, Error> {
        let mut sum = Array2::zeros((x.nrows(), y.nrows()));
        for part in &self.parts.0 {
            add(&mut sum, &part.gram(x, y)?);
        }
        Ok(sum)
    }

    fn gram_vjp_along(
        &self,
        along: Along,
        x: ArrayView2<T>,
        y: ArrayView2<T>,
        cotangent: ArrayView2<T>,
    ) -> Result<GramGradients<T>, Error> {
        let mut sum = GramGradients::none_yet(along, &x, &y);
        for part in &self.parts.0 {
            sum.append(part.gram_vjp_along(along, x, y, cotangent)?);
        }
        Ok(sum)
    }

    fn diagonal(&self, x: ArrayView2<T>) -> Result<Array1<T>, Error> {
        let mut diagonal = Array1::zeros(x.nrows());
        for part in &self.parts.0 {
            add(&mut diagonal, &part.diagonal(x)?);
        }
        Ok(diagonal)
    }

    fn diagonal_vjp(&self, x: ArrayView2<T>, cotangent: ArrayView1<T>) -> Result<Vec<T>, Error> {
        let mut gradient = Vec::new();
        for part in &self.parts.0 {
            gradient.extend(part.diagonal_vjp(x, cotangent)?);
        }
        Ok(gradient)
    }

    fn check_positive_semi_definite(&self, width: usize) -> Result<(), Error> {
        self.parts.check_positive_semi_definite(width)
    }

    fn parameters(&self) -> Vec<Parameter<T>> {
        self.parts.parameters()
    }

    fn set_parameters(&mut self, values: &[T]) -> Result<(), Error> {
        self.parts.set_parameters(values)
    }
}

/// Adds each number. Infinities of both signs, which would add to NaN, count as the largest numbers.
fn add<T: Real, D: Dimension>(sum: &mut Array<T, D>, part: &ArrayRef<T, D>) {
    sum.zip_mut_with(part, |sum, &k| *sum = bounded(*sum) + bounded(k));
}

impl<T: Real> GramGradients<T> {
    pub(super) fn none_yet(along: Along, x: &ArrayView2<T>, y: &ArrayView2<T>) -> Self {
        Self {
            x: along.zeros(x),
            y: along.zeros(y),
            parameters: Vec::new(),
        }
    }

    /// Adds what one more part says of the points, and puts its parameters last.
    pub(super) fn append(&mut self, part: Self) {
        add(&mut self.x, &part.x);
        add(&mut self.y, &part.y);
        self.parameters.extend(part.parameters);
    }
}
