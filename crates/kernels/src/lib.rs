//! Kernels, their spectral densities and their random features, with all gradients.
//!
//! A kernel says how alike two points are. There are two ways to have one, and this crate joins
//! them.
//!
//! **In closed form**, as a [`Kernel`]: its Gram matrix, the gradients along points and
//! hyper-parameters, and sums, products and multiples of kernels, which are kernels again. The
//! hyper-parameters are a flat, named list, so that an optimiser need not know which kernel it trains.
//! [`AnyKernel`] holds any of them as data that serde reads and writes.
//!
//! **By its frequencies.** A positive-definite function of the difference $x - y$ is the Fourier
//! transform of a density of frequencies (Bochner), so averaging cosines over $R$ draws $w_r$ from
//! that density approximates it:
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
//! **From one to the other** leads the [`SpectralDensity`] of a [`Stationary`] kernel: Gaussian for
//! the RBF, Student's t for the Matérn family, a mixture for the spectral mixture.
//! [`random_frequencies`] draws from it, [`coupled_frequencies`] does so with less waste, and
//! [`UniformBound`] says how many draws are enough. Where points come from otherwise (parameters,
//! a network) is the business of the crate above.
//!
//! A generator is always an argument. Gram matrices of kernels in closed form, [`random_feature_map`] and
//! [`TimeFeatures`] are computed on the calling thread; [`feature_map`] and its gradients split the rows among
//! the threads of rayon's current pool, with the same result for any number of them.
//!
//! The crates whose types appear in arguments are re-exported: [`ndarray`] and [`rand`].
//!
//! # Example
//!
//! A kernel, its random features, and one step of training that makes two given inputs less alike:
//!
//! ```
//! use bochner_kernels::{Kernel, Lengthscale, RbfConfig, random_frequencies};
//! use bochner_numerics::Seed;
//! use bochner_kernels::ndarray::array;
//!
//! let (x, y) = (array![[0.3, 0.1]], array![[-0.2, 0.4]]);
//! let lengthscale = Lengthscale::PerDimension(vec![0.5, 2.0]);
//! let mut kernel = RbfConfig { lengthscale }.build()?;
//! let before = kernel.gram(x.view(), y.view())?[[0, 0]];
//!
//! let mut stream = Seed::new(2021).stream("frequencies");
//! let frequencies = random_frequencies(&kernel, 2, 4096, &mut stream)?;
//! let approximately: f64 = frequencies.gram(x.view(), y.view())?[[0, 0]];
//! assert!((approximately - before).abs() < 0.05);
//!
//! let slope = kernel.gram_vjp(x.view(), y.view(), array![[1.0]].view())?.parameters;
//! let parameters = kernel.parameters().into_iter().zip(slope);
//! let values: Vec<f64> = parameters.map(|(p, slope)| p.value - 0.1 * slope).collect();
//! kernel.set_parameters(&values)?;
//! assert!(kernel.gram(x.view(), y.view())?[[0, 0]] < before);
//! # Ok::<(), bochner_kernels::Error>(())
//! ```
//!
//! # Map
//!
//! | module | holds |
//! |---|---|
//! | `stationary` | [`Rbf`], [`Matern`], [`RationalQuadratic`], [`Expsin`], [`SpectralMixture`], [`Constant`], [`White`] |
//! | `nonstationary` | [`Linear`], [`Polynomial`] |
//! | `any` | [`AnyKernel`]: every kernel as data, with `+` and `*` |
//! | `compose` | [`Sum`], [`Product`], [`Scale`], [`Columns`] |
//! | `density` | [`SpectralDensity`] and the closed forms, [`random_frequencies`] |
//! | `features` | [`SpectralPoints`], [`feature_map`], [`kernel_matrix`], their squares; [`RandomFeatureMap`] for $e^{x \cdot y}$; [`TimeFeatures`] |
//! | `bounds` | [`UniformBound`]: how many points are enough |
//! | [`Kernel`] | the trait of all kernels; [`Lengthscale`], [`Parameter`] |
//! | [`Error`] | what can be wrong with the arguments |

mod any;
mod bounds;
mod compose;
mod density;
mod error;
mod features;
mod kernel;
mod lengthscale;
mod matrix;
mod nonstationary;
mod stationary;
mod written;

pub use any::AnyKernel;
pub use bounds::{UniformBound, UniformBoundConfig};
pub use compose::{Columns, ColumnsConfig, Product, Scale, ScaleConfig, Sum};
pub use density::{
    Coupling, GaussianDensity, MixtureDensity, Norms, RandomFrequencies, SpectralDensity,
    Stationary, StudentTDensity, coupled_frequencies, orthonormal_rows, random_frequencies,
    squared_rbf_density,
};
pub use error::Error;
pub use features::{
    AngleGradients, FeatureMapGradients, KernelMatrixGradients, Logarithms, PointsGradients,
    RandomFeatureMap, SpectralPoints, TimeFeatureGradients, TimeFeatures, feature_map,
    feature_map_vjp, feature_map_with_vjp, kernel_matrix, kernel_matrix_vjp, random_feature_map,
    random_feature_map_vjp, squared_kernel_matrix, squared_kernel_matrix_vjp,
};
pub use kernel::{Along, CloneKernel, Domain, GramGradients, Kernel, Parameter};
pub use lengthscale::Lengthscale;
pub use ndarray;
pub use nonstationary::{Linear, LinearConfig, Polynomial, PolynomialConfig};
pub use rand;
pub use stationary::{
    Constant, ConstantConfig, Cosine, Expsin, ExpsinConfig, Matern, MaternConfig,
    RationalQuadratic, RationalQuadraticConfig, Rbf, RbfConfig, Smoothness, SpectralMixture,
    SpectralMixtureConfig, White, WhiteConfig,
};
