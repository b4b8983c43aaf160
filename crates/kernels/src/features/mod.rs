//! Spectral points and the features they give.

mod blocks;
mod kernel;
mod map;
mod nonstationary;
mod points;
mod random;
mod squared;
mod stationary;
mod time;

pub use kernel::{KernelMatrixGradients, kernel_matrix, kernel_matrix_vjp};
pub use map::{FeatureMapGradients, feature_map, feature_map_vjp, feature_map_with_vjp};
pub use points::{PointsGradients, SpectralPoints};
pub use random::{
    AngleGradients, Logarithms, RandomFeatureMap, random_feature_map, random_feature_map_vjp,
};
pub use squared::{squared_kernel_matrix, squared_kernel_matrix_vjp};
pub use time::{TimeFeatureGradients, TimeFeatures};
