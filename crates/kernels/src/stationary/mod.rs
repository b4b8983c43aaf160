//! Kernels of the difference of two points, and the densities that are their Fourier transforms.

mod distance;
mod expsin;
mod matern;
mod rbf;

pub use expsin::{Expsin, ExpsinConfig};
pub use matern::{Matern, MaternConfig, Smoothness};
pub use rbf::{Rbf, RbfConfig};
