//! The target of a density's fit: values of a kernel at pairs of inputs.

use crate::Error;
use bochner_numerics::argument;
use ndarray::{Array2, ArrayView2};

/// Values of a kernel with $k(x, x) = 1$, at every pair of two sets of inputs.
///
/// Divide the values of another kernel by its variance, as [`empirical_kernel`] does: the features have no
/// scale. A fit refuses values whose mean at equal inputs is below 0.5 or above 2, which no error of
/// estimation explains; where no two inputs are equal, it cannot tell.
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
        argument::at_least_one("x", rows)?;
        argument::at_least_one("y", columns)?;
        argument::shape("values", &[rows, columns], self.values.shape())?;
        for (name, x) in [("x", self.x), ("y", self.y), ("values", self.values)] {
            argument::finite(name, x.shape(), x)?;
        }
        self.check_scale()
    }

    /// Refuses a kernel that is far from one at equal inputs.
    fn check_scale(&self) -> Result<(), Error> {
        let equal = |&((i, j), _): &((usize, usize), &f64)| self.x.row(i) == self.y.row(j);
        let equal: Vec<f64> = self
            .values
            .indexed_iter()
            .filter(equal)
            .map(|(_, &k)| k)
            .collect();
        if equal.is_empty() {
            return Ok(());
        }
        let mean = equal.iter().sum::<f64>() / equal.len() as f64;
        Ok(argument::in_range(
            (0.5..=2.0).contains(&mean),
            "mean of values at equal inputs",
            mean,
            "1, or from 0.5 to 2 for an estimate: divide the values by the kernel's variance",
        )?)
    }
}

/// The kernel estimated from samples of a function: their mean product, scaled to a mean of one on the
/// diagonal.
///
/// $$\hat k_{ij} = \frac{\sum_s y_{si} y_{sj}}{\frac1N \sum_{s,n} y_{sn}^2}$$
///
/// # Shapes
/// `samples: [S, N]`, one function of mean zero in each row, to `[N, N]`.
///
/// # Errors
/// [`Error::Argument`] without samples, or if a sample is not finite, all are zero, or their squares are
/// not finite.
///
/// # Numerics
/// An entry's standard error is about $\sqrt{(1 + k^2) / S}$.
pub fn empirical_kernel(samples: ArrayView2<f64>) -> Result<Array2<f64>, Error> {
    argument::at_least_one("samples", samples.nrows())?;
    argument::at_least_one("inputs", samples.ncols())?;
    argument::finite("samples", samples.shape(), samples)?;
    let products = samples.t().dot(&samples);
    let scale = products.diag().sum() / samples.ncols() as f64;
    let allowed = "finite and above 0: samples must differ from zero and have finite squares";
    argument::in_range(
        scale > 0.0 && scale.is_finite(),
        "mean square of the samples",
        scale,
        allowed,
    )?;
    Ok(products / scale)
}
