//! Processes whose parameters start at the scales of the data, ready for
//! [`fit`](crate::GaussianProcess::fit).

mod rbf;
mod seasonal;
mod spectral_mixture;
mod spectrum;

pub use rbf::{ard_process, rbf_process};
pub use seasonal::seasonal_process;
pub use spectral_mixture::spectral_mixture_process;

use crate::evidence::check_data;
use crate::{Error, GaussianProcess, GaussianProcessConfig, Jitter};
use bochner_kernels::{AnyKernel, ScaleConfig};
use bochner_numerics::argument;
use ndarray::{ArrayView1, ArrayView2};

/// The mean of the targets, and the scales of targets and inputs; a scale is 1 where the data do not
/// vary.
struct Scales {
    mean: f64,
    /// The variance of the targets.
    variance: f64,
    /// The standard deviation of each input.
    spreads: Vec<f64>,
}

impl Scales {
    fn of(x: ArrayView2<f64>, y: ArrayView1<f64>) -> Result<Self, Error> {
        check_data(x, y)?;
        argument::not_empty("x", x.shape())?;
        let columns = x.columns().into_iter().enumerate();
        let spreads = columns.map(|(n, column)| {
            let variance = scale(format!("the variance of column {n} of x"), column)?;
            Ok(variance.sqrt())
        });
        Ok(Self {
            mean: y.sum() / y.len() as f64,
            variance: scale("the variance of y".to_owned(), y)?,
            spreads: spreads.collect::<Result<_, Error>>()?,
        })
    }

    fn process(
        &self,
        kernel: impl Into<AnyKernel<f64>>,
        noise: f64,
    ) -> Result<GaussianProcess, Error> {
        let config = GaussianProcessConfig {
            kernel: kernel.into(),
            mean: self.mean,
            noise,
            observation_noise: None,
            jitter: Jitter::Escalating {
                first: 1e-10 * self.variance,
                last: 1e-4 * self.variance,
            },
        };
        config.build()
    }
}

/// A multiple of a kernel.
fn scaled(variance: f64, base: impl Into<AnyKernel<f64>>) -> Result<AnyKernel<f64>, Error> {
    let base = base.into();
    Ok(ScaleConfig { variance, base }.build()?.into())
}

/// The variance of the values, or 1 if they do not vary.
fn scale(name: String, values: ArrayView1<f64>) -> Result<f64, Error> {
    // The variance of equal values need not be zero, since their mean is rounded.
    if values.iter().all(|v| *v == values[0]) {
        return Ok(1.0);
    }
    let count = values.len() as f64;
    let mean = values.sum() / count;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
    // Far enough from the ends of the type's range for the jitter and for sums over columns.
    let (range, allowed) = (1e-200..=1e200, "from 1e-200 to 1e200: scale the values");
    argument::in_range(range.contains(&variance), name, variance, allowed)?;
    Ok(variance)
}
