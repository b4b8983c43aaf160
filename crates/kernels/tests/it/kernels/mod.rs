//! One of each kernel, for inputs of two dimensions.

use bochner_kernels::{
    Cosine, Kernel, Lengthscale, LinearConfig, MaternConfig, Product, RbfConfig, ScaleConfig,
    Smoothness, SpectralMixtureConfig, Sum,
};
use bochner_numerics::Real;
use ndarray::array;

pub(crate) type Boxed<T> = Box<dyn Kernel<T>>;

/// Every kernel that is positive semi-definite in the plane, with these lengthscales.
pub(crate) fn kernels<T: Real>(first: f64, second: f64) -> Vec<Boxed<T>> {
    let of = T::of;
    let lengthscale = Lengthscale::PerDimension(vec![of(first), of(second)]);
    let mut kernels: Vec<Boxed<T>> = Vec::new();
    for smoothness in Smoothness::ALL {
        let lengthscale = lengthscale.clone();
        let config = MaternConfig {
            smoothness,
            lengthscale,
        };
        kernels.push(Box::new(config.build().unwrap()));
    }
    for cosine in [Cosine::Joint, Cosine::Product] {
        let config = SpectralMixtureConfig {
            weights: array![first, 1.0].mapv(of),
            means: array![[first, -second], [0.2, 0.0]].mapv(of),
            variances: array![[0.1, second], [0.5, 0.1]].mapv(of),
            cosine,
        };
        kernels.push(Box::new(config.build().unwrap()));
    }
    let linear = LinearConfig {
        lengthscale: lengthscale.clone(),
    };
    kernels.push(Box::new(linear.build().unwrap()));
    kernels.push(Box::new(RbfConfig { lengthscale }.build().unwrap()));
    kernels
}

/// Each of them, their sum, and three times their product.
pub(crate) fn with_compositions<T: Real>(first: f64, second: f64) -> Vec<Boxed<T>> {
    let mut all = kernels(first, second);
    all.push(Box::new(Sum::of(kernels(first, second)).unwrap()));
    let base = Box::new(Product::of(kernels(first, second)).unwrap());
    let scaled = ScaleConfig {
        variance: T::of(3.0),
        base,
    };
    all.push(Box::new(scaled.build().unwrap()));
    all
}
