//! Kernels of the difference of two points, and the densities that are their Fourier transforms.

mod distance;
mod rbf;

pub use rbf::{Rbf, RbfConfig};
