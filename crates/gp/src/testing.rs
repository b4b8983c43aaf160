//! Processes and kernels that the tests share.

use crate::{GaussianProcess, GaussianProcessConfig, Jitter};
use bochner_kernels::{
    ColumnsConfig, Cosine, ExpsinConfig, Kernel, Lengthscale, LinearConfig, MaternConfig, Product,
    RbfConfig, ScaleConfig, Smoothness, SpectralMixtureConfig, Sum,
};
use ndarray::array;

pub(crate) fn process(kernel: Box<dyn Kernel<f64>>, mean: f64, noise: f64) -> GaussianProcess {
    let config = GaussianProcessConfig {
        kernel,
        mean,
        noise,
        jitter: Jitter::Fixed(0.0),
    };
    config.build().unwrap()
}

pub(crate) fn scaled_rbf(variance: f64, lengthscale: f64) -> Box<dyn Kernel<f64>> {
    scale(variance, rbf(Lengthscale::Shared(lengthscale)))
}

fn rbf(lengthscale: Lengthscale<f64>) -> Box<dyn Kernel<f64>> {
    Box::new(RbfConfig { lengthscale }.build().unwrap())
}

fn scale(variance: f64, base: Box<dyn Kernel<f64>>) -> Box<dyn Kernel<f64>> {
    Box::new(ScaleConfig { variance, base }.build().unwrap())
}

fn matern(smoothness: Smoothness) -> Box<dyn Kernel<f64>> {
    let lengthscale = Lengthscale::PerDimension(vec![0.8, 1.7]);
    let config = MaternConfig {
        smoothness,
        lengthscale,
    };
    Box::new(config.build().unwrap())
}

pub(crate) fn linear() -> Box<dyn Kernel<f64>> {
    let lengthscale = Lengthscale::Shared(1.3);
    Box::new(LinearConfig { lengthscale }.build().unwrap())
}

fn mixture(cosine: Cosine) -> Box<dyn Kernel<f64>> {
    let config = SpectralMixtureConfig {
        weights: array![0.8, 0.3],
        means: array![[0.1, 0.3], [0.0, -0.4]],
        variances: array![[0.02, 0.05], [0.04, 0.01]],
        cosine,
    };
    Box::new(config.build().unwrap())
}

fn season(column: usize, period: f64) -> Box<dyn Kernel<f64>> {
    let season = ExpsinConfig {
        period,
        lengthscale: 2.0,
    };
    let config = ColumnsConfig {
        columns: vec![column],
        base: Box::new(season.build().unwrap()),
    };
    Box::new(config.build().unwrap())
}

/// All kinds of kernels, and compositions of them, for inputs of two dimensions.
pub(crate) fn kernels() -> Vec<Box<dyn Kernel<f64>>> {
    let each = || Lengthscale::PerDimension(vec![0.9, 1.4]);
    let drifting = Product::of(vec![season(0, 9.0), season(1, 5.0), scaled_rbf(1.2, 1.1)]).unwrap();
    let nested = Sum::of(vec![
        scale(0.6, Box::new(drifting)),
        linear(),
        matern(Smoothness::ThreeHalves),
    ]);
    vec![
        rbf(Lengthscale::Shared(0.7)),
        rbf(each()),
        scaled_rbf(1.9, 0.7),
        matern(Smoothness::Half),
        matern(Smoothness::ThreeHalves),
        matern(Smoothness::FiveHalves),
        linear(),
        mixture(Cosine::Joint),
        mixture(Cosine::Product),
        scale(0.4, mixture(Cosine::Joint)),
        Box::new(nested.unwrap()),
    ]
}
