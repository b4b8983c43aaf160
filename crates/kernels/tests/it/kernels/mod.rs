//! One of each kernel, for inputs of two dimensions.

use bochner_kernels::{
    AnyKernel, ConstantConfig, Cosine, Lengthscale, LinearConfig, MaternConfig, PolynomialConfig,
    Product, RationalQuadraticConfig, RbfConfig, ScaleConfig, Smoothness, SpectralMixtureConfig,
    Stationary, Sum, WhiteConfig,
};
use bochner_numerics::Real;
use ndarray::{Array2, array};

/// Every kernel that is positive semi-definite in the plane, with these lengthscales.
pub(crate) fn kernels<T: Real>(first: f64, second: f64) -> Vec<AnyKernel<T>> {
    let of = T::of;
    let lengthscale = Lengthscale::PerDimension(vec![of(first), of(second)]);
    let mut kernels: Vec<AnyKernel<T>> = Vec::new();
    for smoothness in Smoothness::ALL {
        let lengthscale = lengthscale.clone();
        let config = MaternConfig {
            smoothness,
            lengthscale,
        };
        kernels.push(config.build().unwrap().into());
    }
    for cosine in [Cosine::Joint, Cosine::Product] {
        let config = SpectralMixtureConfig {
            weights: array![first, 1.0].mapv(of),
            means: array![[first, -second], [0.2, 0.0]].mapv(of),
            variances: array![[0.1, second], [0.5, 0.1]].mapv(of),
            cosine,
        };
        kernels.push(config.build().unwrap().into());
    }
    let linear = LinearConfig {
        lengthscale: lengthscale.clone(),
    };
    let rational = RationalQuadraticConfig {
        lengthscale: lengthscale.clone(),
        alpha: of(second),
    };
    let polynomial = PolynomialConfig {
        lengthscale: lengthscale.clone(),
        offset: of(first),
        degree: 2,
    };
    let variance = of(second);
    kernels.extend([
        linear.build().unwrap().into(),
        RbfConfig { lengthscale }.build().unwrap().into(),
        rational.build().unwrap().into(),
        polynomial.build().unwrap().into(),
        ConstantConfig { variance }.build().unwrap().into(),
        WhiteConfig { variance }.build().unwrap().into(),
    ]);
    kernels
}

/// Each of them, their sum, and three times their product.
pub(crate) fn with_compositions<T: Real>(first: f64, second: f64) -> Vec<AnyKernel<T>> {
    let mut all = kernels(first, second);
    all.push(Sum::new(kernels(first, second)).unwrap().into());
    let base = Product::new(kernels(first, second)).unwrap().into();
    let scaled = ScaleConfig {
        variance: T::of(3.0),
        base,
    };
    all.push(scaled.build().unwrap().into());
    all
}

/// Every kernel with a density, as wide as standard normal inputs are apart.
pub(crate) fn with_densities(width: usize) -> Vec<Box<dyn Stationary<f64>>> {
    let scale = (width as f64 / 2.0).sqrt();
    let along = |axis: usize| if axis.is_multiple_of(2) { 0.8 } else { 1.7 };
    let lengths = (0..width).map(|axis| along(axis) * scale).collect();
    let lengthscale = Lengthscale::PerDimension(lengths);
    let rbf = RbfConfig {
        lengthscale: lengthscale.clone(),
    };
    let mut kernels: Vec<Box<dyn Stationary<f64>>> = vec![Box::new(rbf.build().unwrap())];
    for smoothness in Smoothness::ALL {
        let lengthscale = lengthscale.clone();
        let config = MaternConfig {
            smoothness,
            lengthscale,
        };
        kernels.push(Box::new(config.build().unwrap()));
    }
    for cosine in [Cosine::Joint, Cosine::Product] {
        let of = |component: usize, even: f64, odd: f64| {
            move |axis: usize| {
                if (axis + component).is_multiple_of(2) {
                    even
                } else {
                    odd
                }
            }
        };
        let (means, variances) = (
            [of(0, 0.2, -0.3), of(0, 0.4, 0.1)],
            [of(0, 0.02, 0.01), of(1, 0.03, 0.01)],
        );
        let config = SpectralMixtureConfig {
            weights: array![0.5, 1.5],
            means: Array2::from_shape_fn((2, width), |(q, axis)| means[q](axis) / scale),
            variances: Array2::from_shape_fn((2, width), |(q, axis)| {
                variances[q](axis) / (scale * scale)
            }),
            cosine,
        };
        kernels.push(Box::new(config.build().unwrap()));
    }
    kernels
}
