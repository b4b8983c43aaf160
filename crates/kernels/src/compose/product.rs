//! The product of kernels.

use super::Parts;
use crate::kernel::{Along, GramGradients, Kernel, Parameter, check_cotangent};
use crate::{AnyKernel, Error};
use bochner_numerics::Real;
use bochner_numerics::scaling::bounded;
use ndarray::{Array, Array1, Array2, ArrayRef, ArrayView1, ArrayView2, Dimension};
use serde::{Deserialize, Serialize};

/// The product of kernels, $k = \prod_i k_i$: two points are alike if all parts find them so.
///
/// The operator `*` makes one. The parameters of part `i` are called `i.name`.
///
/// # Example
///
/// Seasons that change slowly:
///
/// ```
/// use bochner_kernels::{ExpsinConfig, Kernel, Lengthscale, RbfConfig};
/// use bochner_kernels::ndarray::array;
///
/// let season = ExpsinConfig { period: 12.0, lengthscale: Lengthscale::Shared(1.0) }.build()?;
/// let drift = RbfConfig { lengthscale: Lengthscale::Shared(24.0) }.build()?;
/// let kernel = season * drift;
/// let k = kernel.value(array![0.0].view(), array![24.0].view())?;
/// assert!((k - (-0.5_f64).exp()).abs() < 1e-12);
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
#[serde(bound(
    serialize = "T: Real + Serialize",
    deserialize = "T: Real + Deserialize<'de>"
))]
pub struct Product<T: Real> {
    parts: Parts<T>,
}

impl<T: Real> Product<T> {
    /// The product of these kernels.
    ///
    /// # Errors
    /// [`Error::Argument`] if there is none.
    pub fn new(parts: Vec<AnyKernel<T>>) -> Result<Self, Error> {
        let parts = Parts::new(parts)?;
        Ok(Self { parts })
    }

    /// The kernels that are multiplied.
    pub fn parts(&self) -> &[AnyKernel<T>] {
        &self.parts.0
    }

    /// For each part the product of the others' Gram matrices.
    fn others(
        &self,
        x: ArrayView2<T>,
        y: ArrayView2<T>,
        cotangent: &ArrayView2<T>,
    ) -> Result<Vec<Array2<T>>, Error> {
        let grams = self.parts.0.iter().map(|part| part.gram(x, y));
        let grams = grams.collect::<Result<Vec<_>, _>>()?;
        check_cotangent(&x, &y, cotangent)?;
        Ok(products_of_others(&grams))
    }
}

impl<T: Real> Kernel<T> for Product<T> {
    fn gram(&self, x: ArrayView2<T>, y: ArrayView2<T>) -> Result<Array2<T>, Error> {
        let mut product = Array2::ones((x.nrows(), y.nrows()));
        for part in &self.parts.0 {
            multiply(&mut product, &part.gram(x, y)?);
        }
        Ok(product)
    }

    fn gram_vjp_along(
        &self,
        along: Along,
        x: ArrayView2<T>,
        y: ArrayView2<T>,
        cotangent: ArrayView2<T>,
    ) -> Result<GramGradients<T>, Error> {
        let mut sum = GramGradients::none_yet(along, &x, &y);
        for (part, others) in self.parts.0.iter().zip(self.others(x, y, &cotangent)?) {
            let mut along_part = others;
            multiply(&mut along_part, &cotangent);
            let along_part = along_part.mapv_into(bounded);
            sum.append(part.gram_vjp_along(along, x, y, along_part.view())?);
        }
        Ok(sum)
    }

    fn diagonal(&self, x: ArrayView2<T>) -> Result<Array1<T>, Error> {
        let mut diagonal = Array1::ones(x.nrows());
        for part in &self.parts.0 {
            multiply(&mut diagonal, &part.diagonal(x)?);
        }
        Ok(diagonal)
    }

    fn diagonal_vjp(&self, x: ArrayView2<T>, cotangent: ArrayView1<T>) -> Result<Vec<T>, Error> {
        let diagonals = self.parts.0.iter().map(|part| part.diagonal(x));
        let diagonals = diagonals.collect::<Result<Vec<_>, _>>()?;
        let mut gradient = Vec::new();
        for (part, mut others) in self.parts.0.iter().zip(products_of_others(&diagonals)) {
            multiply(&mut others, &cotangent);
            gradient.extend(part.diagonal_vjp(x, others.view())?);
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

/// For each factor the product of all others, without dividing: a factor may be zero.
fn products_of_others<T: Real, D: Dimension>(factors: &[Array<T, D>]) -> Vec<Array<T, D>> {
    let mut before = Array::ones(factors[0].raw_dim());
    let mut products = Vec::with_capacity(factors.len());
    for factor in factors {
        products.push(before.clone());
        multiply(&mut before, factor);
    }
    let mut after = Array::ones(factors[0].raw_dim());
    for (product, factor) in products.iter_mut().zip(factors).rev() {
        multiply(product, &after);
        multiply(&mut after, factor);
    }
    products
}

/// Multiplies each number. Zero times what has overflowed to infinity is zero.
fn multiply<T: Real, D: Dimension>(product: &mut Array<T, D>, by: &ArrayRef<T, D>) {
    product.zip_mut_with(by, |x, &y| {
        let vanishes = y == T::zero() && x.is_infinite() || y.is_infinite() && *x == T::zero();
        *x = if vanishes { T::zero() } else { *x * y };
    });
}
