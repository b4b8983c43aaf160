//! Kernels of the difference of two points, and the densities that are their Fourier transforms.

mod component;
mod constant;
mod cosine;
mod distance;
mod expsin;
mod matern;
mod rational_quadratic;
mod rbf;
mod spectral_mixture;
mod white;

pub use constant::{Constant, ConstantConfig};
pub use cosine::Cosine;
pub use expsin::{Expsin, ExpsinConfig};
pub use matern::{Matern, MaternConfig, Smoothness};
pub use rational_quadratic::{RationalQuadratic, RationalQuadraticConfig};
pub use rbf::{Rbf, RbfConfig};
pub use spectral_mixture::{SpectralMixture, SpectralMixtureConfig};
pub use white::{White, WhiteConfig};
