//! A process for smooth functions without further structure.

use super::{Scales, scaled};
use crate::{Error, GaussianProcess};
use bochner_kernels::{Lengthscale, RbfConfig};
use ndarray::{ArrayView1, ArrayView2};

/// The process of a scaled radial basis function with one lengthscale, started by the data.
///
/// $$m = \bar y, \qquad k(x, y) = s_y^2 \exp\Bigl(-\frac{|x - y|^2}{2 l^2}\Bigr), \qquad
/// l^2 = \sum_n s_n^2, \qquad \sigma^2 = \frac{s_y^2}{10}$$
///
/// *where* $s_y^2$ is the variance of the targets and $s_n^2$ that of input $n$: the mean squared
/// distance of two inputs is $2 l^2$. The jitter escalates from $10^{-10} s_y^2$ to
/// $10^{-4} s_y^2$.
///
/// # Shapes
/// `x: [n, d]`, `y: [n]`.
///
/// # Errors
/// [`Error::Argument`] without observations or inputs, for data of other shapes, that are not finite or
/// too large to be squared.
///
/// # Example
/// ```
/// use bochner_gp::ndarray::array;
/// use bochner_gp::rbf_process;
///
/// let process = rbf_process(array![[0.0], [2.0]].view(), array![1.0, 3.0].view())?;
/// assert_eq!((process.mean(), process.noise()), (2.0, 0.1));
/// # Ok::<(), bochner_gp::Error>(())
/// ```
pub fn rbf_process(x: ArrayView2<f64>, y: ArrayView1<f64>) -> Result<GaussianProcess, Error> {
    let scales = Scales::of(x, y)?;
    let squares = scales.spreads.iter().map(|s| s * s);
    let lengthscale = Lengthscale::Shared(squares.sum::<f64>().sqrt());
    process(&scales, lengthscale)
}

/// The process of a scaled radial basis function with one lengthscale for each input (automatic relevance
/// determination), started by the data.
///
/// It starts as [`rbf_process`] does, but with the lengthscales $l_n = s_n \sqrt d$. After a fit, an input with a
/// lengthscale far above its spread explains nothing.
///
/// # Shapes
/// `x: [n, d]`, `y: [n]`.
///
/// # Errors
/// The errors of [`rbf_process`].
///
/// # Example
/// ```
/// use bochner_gp::ndarray::array;
/// use bochner_gp::ard_process;
///
/// let process = ard_process(array![[0.0, 3.0], [2.0, 9.0]].view(), array![1.0, 3.0].view())?;
/// let lengthscale = &process.parameters()[4];
/// assert_eq!(lengthscale.name, "kernel.base.lengthscale[1]");
/// assert!((lengthscale.value - 3.0 * 2.0_f64.sqrt()).abs() < 1e-12);
/// # Ok::<(), bochner_gp::Error>(())
/// ```
#[doc(alias = "automatic relevance determination")]
pub fn ard_process(x: ArrayView2<f64>, y: ArrayView1<f64>) -> Result<GaussianProcess, Error> {
    let scales = Scales::of(x, y)?;
    let factor = (scales.spreads.len() as f64).sqrt();
    let each = scales.spreads.iter().map(|s| s * factor).collect();
    process(&scales, Lengthscale::PerDimension(each))
}

fn process(scales: &Scales, lengthscale: Lengthscale<f64>) -> Result<GaussianProcess, Error> {
    let variance = scales.variance;
    let kernel = scaled(variance, RbfConfig { lengthscale }.build()?)?;
    scales.process(kernel, 0.1 * variance)
}
