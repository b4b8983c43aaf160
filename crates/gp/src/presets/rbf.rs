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

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array1, Array2, array};

    #[test]
    fn it_starts_at_the_scales_of_the_data() {
        let x = array![[0.0, 7.0], [6.0, 7.0], [0.0, 15.0], [6.0, 15.0]];
        let y = array![1.0, 1.0, 5.0, 5.0];
        let process = rbf_process(x.view(), y.view()).unwrap();
        let values: Vec<f64> = process.parameters().iter().map(|p| p.value).collect();
        for (got, want) in values.iter().zip([3.0, 0.4, 4.0, 5.0]) {
            assert!((got - want).abs() < 1e-12);
        }
        assert!(process.evidence(x.view(), y.view()).is_ok());
    }

    #[test]
    fn data_without_any_variation_have_a_process_and_no_data_have_none() {
        let process = rbf_process(Array2::ones((3, 1)).view(), Array1::ones(3).view()).unwrap();
        assert_eq!(process.parameters()[2].value, 1.0);
        // The mean of three tenths is no tenth, so that their rounded variance is not zero.
        let (x, y) = (Array2::from_elem((3, 1), 0.1), Array1::from_elem(3, 0.1));
        let process = rbf_process(x.view(), y.view()).unwrap();
        let parameters = process.parameters().into_iter().map(|p| p.value);
        assert_eq!(parameters.skip(2).collect::<Vec<_>>(), [1.0; 2]);
        let one = rbf_process(array![[1.0, 2.0]].view(), array![3.0].view()).unwrap();
        assert_eq!(one.mean(), 3.0);
        let none = rbf_process(Array2::zeros((0, 1)).view(), Array1::zeros(0).view());
        let said = none.unwrap_err().to_string();
        assert!(
            said.starts_with("`x` has shape [0, 1] and so no elements"),
            "{said}"
        );
    }

    #[test]
    fn data_without_scales_are_named() {
        let said = |x: Array2<f64>, y: Array1<f64>| {
            rbf_process(x.view(), y.view()).unwrap_err().to_string()
        };
        let flat = said(Array2::zeros((3, 0)), Array1::zeros(3));
        assert!(
            flat.starts_with("`the number of columns of x` is 0"),
            "{flat}"
        );
        let huge = said(array![[0.0], [1.0]], array![0.0, 1e200]);
        assert!(
            huge.contains("variance of y") && huge.contains("scale the values"),
            "{huge}"
        );
        let huge = said(array![[0.0, 0.0], [0.0, 1e200]], array![0.0, 1.0]);
        assert!(huge.contains("variance of column 1 of x"), "{huge}");
        let large = said(array![[0.0, 0.0], [2e154, 2e154]], array![0.0, 1.0]);
        assert!(large.contains("variance of column 0 of x"), "{large}");
        for tiny in [1e-158, 1e-200] {
            let tiny = said(array![[0.0], [1.0]], array![0.0, tiny]);
            assert!(
                tiny.contains("variance of y") && tiny.contains("scale"),
                "{tiny}"
            );
        }
    }
}
