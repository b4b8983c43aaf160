//! Processes that start where the data say, ready for [`fit`](crate::GaussianProcess::fit).

mod rbf;
mod spectral_mixture;
mod spectrum;

pub use rbf::rbf;
pub use spectral_mixture::spectral_mixture;

use crate::check::{expect_data, expect_some};
use crate::{Error, GaussianProcess, GaussianProcessConfig, Jitter};
use bochner_kernels::Kernel;
use ndarray::{ArrayView1, ArrayView2};

/// The size of things in the data; one where they do not vary.
struct Scales {
    mean: f64,
    /// Of the targets.
    variance: f64,
    /// The standard deviation of each input.
    spreads: Vec<f64>,
}

impl Scales {
    fn of(x: ArrayView2<f64>, y: ArrayView1<f64>) -> Result<Self, Error> {
        expect_data(&x, &y)?;
        expect_some("y", y.len())?;
        let spreads = x.columns().into_iter().map(|c| or_one(variance(c)).sqrt());
        Ok(Self {
            mean: y.sum() / y.len() as f64,
            variance: or_one(variance(y)),
            spreads: spreads.collect(),
        })
    }

    fn process(&self, kernel: Box<dyn Kernel<f64>>, noise: f64) -> Result<GaussianProcess, Error> {
        let config = GaussianProcessConfig {
            kernel,
            mean: self.mean,
            noise,
            jitter: Jitter::Escalating {
                first: 1e-10 * self.variance,
                last: 1e-4 * self.variance,
            },
        };
        config.build()
    }
}

fn variance(values: ArrayView1<f64>) -> f64 {
    let count = values.len() as f64;
    let mean = values.sum() / count;
    values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count
}

fn or_one(value: f64) -> f64 {
    if value > 0.0 { value } else { 1.0 }
}
