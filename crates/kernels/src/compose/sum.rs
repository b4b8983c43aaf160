//! The sum of kernels.

use super::Parts;
use crate::Error;
use crate::kernel::{Along, GramGradients, Kernel, Parameter};
use bochner_numerics::Real;
use ndarray::{Array1, Array2, ArrayView2};

/// The sum of kernels, $k = \sum_i k_i$: two points are alike if one part finds them so.
///
/// The parameters of part `i` are called `i.name`.
///
/// # Example
/// ```
/// use bochner_kernels::{ExpsinConfig, Kernel, Lengthscale, LinearConfig, Sum};
/// use bochner_kernels::ndarray::array;
///
/// let season = ExpsinConfig { period: 12.0, lengthscale: 1.0 }.build()?;
/// let trend = LinearConfig { lengthscale: Lengthscale::Shared(10.0) }.build()?;
/// let kernel = Sum::of(vec![Box::new(season), Box::new(trend)])?;
/// let k = kernel.value(array![12.0].view(), array![24.0].view())?;
/// assert!((k - (1.0 + 2.88_f64)).abs() < 1e-12);
///
/// let names: Vec<_> = kernel.parameters().into_iter().map(|p| p.name).collect();
/// assert_eq!(names, ["0.period", "0.lengthscale", "1.lengthscale"]);
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sum<T: Real> {
    parts: Parts<T>,
}

impl<T: Real> Sum<T> {
    /// The sum of these kernels.
    ///
    /// # Errors
    /// [`Error::Argument`] if there is none.
    pub fn of(parts: Vec<Box<dyn Kernel<T>>>) -> Result<Self, Error> {
        let parts = Parts::new(parts)?;
        Ok(Self { parts })
    }
}

impl<T: Real> Kernel<T> for Sum<T> {
    fn gram(&self, x: ArrayView2<T>, y: ArrayView2<T>) -> Result<Array2<T>, Error> {
        let mut sum = Array2::zeros((x.nrows(), y.nrows()));
        for part in &self.parts.0 {
            sum += &part.gram(x, y)?;
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
            diagonal += &part.diagonal(x)?;
        }
        Ok(diagonal)
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
        self.x += &part.x;
        self.y += &part.y;
        self.parameters.extend(part.parameters);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{gradients_agree, parts, refused, values_are_replaced_or_refused};
    use bochner_numerics::check::random;

    #[test]
    fn it_is_the_sum() {
        let (x, y) = (random((4, 3), "x"), random((5, 3), "y"));
        let sum = Sum::of(parts()).unwrap().gram(x.view(), y.view()).unwrap();
        let each = parts().into_iter();
        let want = each.fold(Array2::<f64>::zeros((4, 5)), |sum, part| {
            sum + part.gram(x.view(), y.view()).unwrap()
        });
        assert_eq!(sum, want);
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        let mut kernel = Sum::of(parts()).unwrap();
        gradients_agree(&mut kernel, &random((4, 3), "x"), &random((5, 3), "y"));
        values_are_replaced_or_refused(&mut kernel);
    }

    #[test]
    fn there_is_no_empty_sum() {
        assert_eq!(refused(Sum::<f64>::of(Vec::new())), "parts");
    }
}
