//! A process for a trend with seasons, the classic sum of four kernels.

use super::{Scales, scaled};
use crate::{Error, GaussianProcess};
use bochner_kernels::{ExpsinConfig, Lengthscale, RationalQuadraticConfig, Rbf, RbfConfig};
use bochner_numerics::argument;
use ndarray::{ArrayView1, ArrayView2};

/// The process of a smooth trend, seasons that change slowly, irregularities of medium length and noise of short
/// range, started by the data.
///
/// $$k = v_1 k_{\text{RBF}}(l_1) + v_2 k_{\text{RBF}}(l_2) k_{\text{sin}}(P, l) + v_3 k_{\text{RQ}}(l_3, \alpha) +
/// v_4 k_{\text{RBF}}(l_4)$$
///
/// *where* $P$ is the `period`, in the unit of `x`, at which the seasons start. The independent noise of each
/// observation is the process's. With $s_y^2$ the variance of the targets and $s_x$ the spread of the input:
///
/// | part | variance | lengthscale |
/// |---|---|---|
/// | trend | $4 s_y^2$ | $4 s_x$ |
/// | seasons | $10^{-2} s_y^2$ | $100 P$, and 1 within a period |
/// | irregularities | $10^{-3} s_y^2$ | $P$, with $\alpha = 1$ |
/// | noise of short range | $10^{-4} s_y^2$ | $P / 10$ |
/// | independent noise | $10^{-4} s_y^2$ | |
///
/// # Shapes
/// `x: [n, 1]`, `y: [n]`.
///
/// # Errors
/// [`Error::Argument`] unless the period is finite and positive and `x` has one column, and those of
/// [`rbf_process`](crate::rbf_process).
///
/// # Reference
/// Rasmussen, Williams, 2006, section 5.4.3: the concentration of carbon dioxide at Mauna Loa.
///
/// # Example
/// ```
/// use bochner_gp::ndarray::{Array, Axis};
/// use bochner_gp::seasonal_process;
///
/// let months = Array::range(0.0, 60.0, 1.0);
/// let y = months.mapv(|t: f64| 0.1 * t + (std::f64::consts::TAU * t / 12.0).sin());
/// let process = seasonal_process(months.insert_axis(Axis(1)).view(), y.view(), 12.0)?;
/// assert_eq!(process.parameters().len(), 13);
/// # Ok::<(), bochner_gp::Error>(())
/// ```
pub fn seasonal_process(
    x: ArrayView2<f64>,
    y: ArrayView1<f64>,
    period: f64,
) -> Result<GaussianProcess, Error> {
    argument::positive("period", period)?;
    argument::shape("x", &[x.nrows(), 1], x.shape())?;
    let scales = Scales::of(x, y)?;
    let (variance, spread) = (scales.variance, scales.spreads[0]);
    let rbf = |lengthscale: f64| -> Result<Rbf<f64>, Error> {
        let lengthscale = Lengthscale::Shared(lengthscale);
        Ok(RbfConfig { lengthscale }.build()?)
    };
    let season = ExpsinConfig {
        period,
        lengthscale: Lengthscale::Shared(1.0),
    };
    let irregular = RationalQuadraticConfig {
        lengthscale: Lengthscale::Shared(period),
        alpha: 1.0,
    };
    let kernel = scaled(4.0 * variance, rbf(4.0 * spread)?)?
        + scaled(1e-2 * variance, rbf(100.0 * period)? * season.build()?)?
        + scaled(1e-3 * variance, irregular.build()?)?
        + scaled(1e-4 * variance, rbf(0.1 * period)?)?;
    scales.process(kernel, 1e-4 * variance)
}
