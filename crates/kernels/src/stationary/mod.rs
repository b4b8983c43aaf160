//! Kernels of the difference of two points, and the densities that are their Fourier transforms.

mod component;
mod cosine;
mod distance;
mod expsin;
mod matern;
mod rbf;
mod spectral_mixture;

pub use cosine::Cosine;
pub use expsin::{Expsin, ExpsinConfig};
pub use matern::{Matern, MaternConfig, Smoothness};
pub use rbf::{Rbf, RbfConfig};
pub use spectral_mixture::{SpectralMixture, SpectralMixtureConfig};
