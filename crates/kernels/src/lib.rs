//! Kernels written as inner products of spectral features, with their gradients.
//!
//! A positive-definite function of the difference $x - y$ is the Fourier transform of a density of
//! frequencies (Bochner), so averaging cosines over $R$ draws $w_r$ from that density approximates
//! it:
//!
//! $$f_S(x, y) = \frac1R \sum_r \cos w_r \cdot (x - y) = \frac{\phi(x) \cdot \phi(y)}{R}.$$
//!
//! With draws of *pairs* of frequencies the same construction reaches kernels that depend on where
//! $x$ and $y$ lie, not only on how far apart they are (Yaglom):
//!
//! $$f_{NS}(x, y) = \frac1{4R} \sum_r \sum_{i=1}^2 \sum_{j=1}^2
//! \cos(w_{ir} \cdot x - w_{jr} \cdot y) = \frac{\phi(x) \cdot \phi(y)}{4R}.$$
//!
//! The two differ in the features alone, so [`SpectralPoints`] carries the choice, and everything
//! else is written once. The features are what matters to attention: the matrix of all pairs is
//! quadratic in the sequence's length, the features are linear in it. Learning a kernel means
//! learning where its points lie, so each function stands next to its vector-Jacobian product,
//! which goes to the points as well as to the inputs.
//!
//! Nothing here draws a point: where the points come from (fixed draws, parameters, a network) is
//! the business of the crate above. Everything runs on the calling thread; attention has many
//! heads, and calls these functions from inside its own parallel loop.
//!
//! # Example
//!
//! One step towards a kernel in which two given inputs are less alike:
//!
//! ```
//! use bochner_kernels::{SpectralPoints, kernel_matrix, kernel_matrix_vjp};
//! use ndarray::array;
//!
//! let (x, y) = (array![[0.3, 0.1]], array![[-0.2, 0.4]]);
//! let w1 = array![[1.0, 0.5], [-0.3, 2.0]];
//! let w2 = array![[0.8, 0.6], [-0.1, 1.5]];
//! let points = SpectralPoints::Nonstationary { w1: w1.view(), w2: w2.view() };
//! let before = kernel_matrix(x.view(), y.view(), &points)?;
//!
//! let slope = kernel_matrix_vjp(x.view(), y.view(), &points, array![[1.0]].view())?;
//! let w1 = &w1 - slope.w1 * 0.1;
//! let w2 = &w2 - slope.w2.expect("pairs of points") * 0.1;
//! let points = SpectralPoints::Nonstationary { w1: w1.view(), w2: w2.view() };
//! let after = kernel_matrix(x.view(), y.view(), &points)?;
//! assert!(after[[0, 0]] < before[[0, 0]]);
//! # Ok::<(), bochner_kernels::Error>(())
//! ```
//!
//! # Map
//!
//! | item | is |
//! |---|---|
//! | [`SpectralPoints`] | the frequencies, stationary or in pairs |
//! | [`feature_map`], [`feature_map_vjp`] | $\phi$, linear in the length |
//! | [`kernel_matrix`], [`kernel_matrix_vjp`] | $f$ for all pairs of two sets |
//! | [`features`] | the module of all of these |
//! | [`Error`] | what can be wrong with the arguments |

pub mod bounds;
pub mod compose;
pub mod density;
mod error;
pub mod features;
mod kernel;
mod lengthscale;
pub mod nonstationary;
pub mod stationary;
#[cfg(test)]
mod testing;

pub use bounds::{UniformBound, UniformBoundConfig};
pub use compose::{Product, Scale, ScaleConfig, Sum};
pub use density::{
    GaussianDensity, MixtureDensity, RandomFeatures, SpectralDensity, Stationary, StudentTDensity,
    orthogonal_features, random_features, squared_rbf_density,
};
pub use error::Error;
pub use features::{
    FeatureMapGradients, KernelMatrixGradients, SpectralPoints, feature_map, feature_map_vjp,
    kernel_matrix, kernel_matrix_vjp,
};
pub use kernel::{Domain, GramGradients, Kernel, Parameter};
pub use lengthscale::Lengthscale;
pub use nonstationary::{Linear, LinearConfig};
pub use stationary::{
    Cosine, Expsin, ExpsinConfig, Matern, MaternConfig, Rbf, RbfConfig, Smoothness,
    SpectralMixture, SpectralMixtureConfig,
};
