//! What a density is fitted to: values of a kernel at pairs of inputs.

use crate::Error;
use crate::error::{expect_finite, expect_shape, expect_some};
use ndarray::{Array2, ArrayView2};

/// Values of a kernel with $k(x, x) = 1$, at every pair of two sets of inputs.
///
/// For a stationary kernel one input on the right, the origin, will do: the inputs on the left are
/// then the lags.
///
/// # Shapes
/// `x: [N, d]`, `y: [N', d]`, `values: [N, N']`.
#[derive(Clone, Copy, Debug)]
pub struct KernelValues<'a> {
    /// The inputs on the left.
    pub x: ArrayView2<'a, f64>,
    /// The inputs on the right.
    pub y: ArrayView2<'a, f64>,
    /// $k(x_i, y_j)$.
    pub values: ArrayView2<'a, f64>,
}

impl KernelValues<'_> {
    pub(super) fn check(&self) -> Result<(), Error> {
        let (rows, columns) = (self.x.nrows(), self.y.nrows());
        expect_some("x", rows)?;
        expect_some("y", columns)?;
        expect_shape("values", &[rows, columns], self.values.shape())?;
        expect_finite("x", self.x.iter())?;
        expect_finite("y", self.y.iter())?;
        expect_finite("values", self.values.iter())
    }
}

/// The kernel that samples of a function speak for: their mean product, scaled to a mean of one on
/// the diagonal.
///
/// $$\hat k_{ij} = \frac{\sum_s y_{si} y_{sj}}{\frac1N \sum_{s,n} y_{sn}^2}$$
///
/// # Shapes
/// `samples: [S, N]`, one function of mean zero in each row, to `[N, N]`.
///
/// # Errors
/// [`Error::Empty`], [`Error::OutOfRange`] if a sample is not finite or all are zero.
///
/// # Numerics
/// An entry's standard error is about $\sqrt{(1 + k^2) / S}$.
pub fn empirical_kernel(samples: ArrayView2<f64>) -> Result<Array2<f64>, Error> {
    expect_some("samples", samples.nrows())?;
    expect_some("inputs", samples.ncols())?;
    expect_finite("samples", samples.iter())?;
    let products = samples.t().dot(&samples);
    let scale = products.diag().sum() / samples.ncols() as f64;
    if scale > 0.0 && scale.is_finite() {
        return Ok(products / scale);
    }
    Err(Error::OutOfRange {
        what: "samples",
        required: "different from zero and not too large to be squared",
        got: scale,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn the_empirical_kernel_by_hand() {
        let samples = array![[1.0, 2.0], [1.0, -1.0]];
        let want = array![[2.0, 1.0], [1.0, 5.0]] / 3.5;
        assert_eq!(empirical_kernel(samples.view()).unwrap(), want);
        assert!(empirical_kernel(array![[0.0, 0.0]].view()).is_err());
        assert!(empirical_kernel(Array2::zeros((0, 3)).view()).is_err());
    }
}
