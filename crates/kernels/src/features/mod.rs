//! Spectral points and the features they give.

mod blocks;
mod kernel;
mod map;
mod nonstationary;
mod one_pass;
mod points;
mod squared;
mod stationary;

pub use kernel::{KernelMatrixGradients, kernel_matrix, kernel_matrix_vjp};
pub use map::{FeatureMapGradients, feature_map, feature_map_into, feature_map_vjp};
pub use one_pass::feature_map_with_vjp;
pub use points::{PointsGradients, SpectralPoints};
pub use squared::{squared_kernel_matrix, squared_kernel_matrix_vjp};
