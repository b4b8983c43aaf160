//! Processes and kernels that the tests share.

use bochner_gp::{GaussianProcess, GaussianProcessConfig, Jitter};
use bochner_kernels::{
    AnyKernel, ColumnsConfig, ConstantConfig, Cosine, ExpsinConfig, Lengthscale, LinearConfig,
    MaternConfig, PolynomialConfig, RationalQuadraticConfig, RbfConfig, ScaleConfig, Smoothness,
    SpectralMixtureConfig, WhiteConfig,
};
use ndarray::array;

/// The settings of a process without jitter.
pub(crate) fn config(
    kernel: impl Into<AnyKernel<f64>>,
    mean: f64,
    noise: f64,
) -> GaussianProcessConfig {
    GaussianProcessConfig {
        kernel: kernel.into(),
        mean,
        noise,
        observation_noise: None,
        jitter: Jitter::Fixed(0.0),
    }
}

pub(crate) fn process(kernel: impl Into<AnyKernel<f64>>, mean: f64, noise: f64) -> GaussianProcess {
    config(kernel, mean, noise).build().unwrap()
}

pub(crate) fn scaled_rbf(variance: f64, lengthscale: f64) -> AnyKernel<f64> {
    scale(variance, rbf(Lengthscale::Shared(lengthscale)))
}

fn rbf(lengthscale: Lengthscale<f64>) -> AnyKernel<f64> {
    RbfConfig { lengthscale }.build().unwrap().into()
}

fn scale(variance: f64, base: AnyKernel<f64>) -> AnyKernel<f64> {
    ScaleConfig { variance, base }.build().unwrap().into()
}

fn matern(smoothness: Smoothness) -> AnyKernel<f64> {
    let lengthscale = Lengthscale::PerDimension(vec![0.8, 1.7]);
    let config = MaternConfig {
        smoothness,
        lengthscale,
    };
    config.build().unwrap().into()
}

pub(crate) fn linear() -> AnyKernel<f64> {
    let lengthscale = Lengthscale::Shared(1.3);
    LinearConfig { lengthscale }.build().unwrap().into()
}

fn mixture(cosine: Cosine) -> AnyKernel<f64> {
    let config = SpectralMixtureConfig {
        weights: array![0.8, 0.3],
        means: array![[0.1, 0.3], [0.0, -0.4]],
        variances: array![[0.02, 0.05], [0.04, 0.01]],
        cosine,
    };
    config.build().unwrap().into()
}

fn season(column: usize, period: f64) -> AnyKernel<f64> {
    let season = ExpsinConfig {
        period,
        lengthscale: Lengthscale::Shared(2.0),
    };
    let config = ColumnsConfig {
        columns: vec![column],
        base: season.build().unwrap().into(),
    };
    config.build().unwrap().into()
}

/// All kinds of kernels, and compositions of them, for inputs of two dimensions.
pub(crate) fn kernels() -> Vec<AnyKernel<f64>> {
    let each = || Lengthscale::PerDimension(vec![0.9, 1.4]);
    let drifting = season(0, 9.0) * season(1, 5.0) * scaled_rbf(1.2, 1.1);
    let nested = scale(0.6, drifting) + linear() + matern(Smoothness::ThreeHalves);
    let rational = RationalQuadraticConfig {
        lengthscale: each(),
        alpha: 0.8,
    };
    let polynomial = PolynomialConfig {
        lengthscale: each(),
        offset: 0.5,
        degree: 2,
    };
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
        nested,
        rational.build().unwrap().into(),
        polynomial.build().unwrap().into(),
        scaled_rbf(0.4, 0.8) + ConstantConfig { variance: 0.3 }.build().unwrap(),
        scaled_rbf(0.4, 0.8) + WhiteConfig { variance: 0.3 }.build().unwrap(),
    ]
}
