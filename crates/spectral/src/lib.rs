//! Spectral densities that are learned, and the posterior their noise is drawn from.
//!
//! A kernel is as good as the frequencies it is sampled at. Fixed Gaussian draws give back the RBF
//! kernel; here the frequencies are learned, in one of three ways.
//!
//! **Directly** ([`direct_points`]): the points are parameters, started near softmax attention's
//! own kernel or as the method's authors start them.
//!
//! **As a Gaussian** ([`GaussianPoints`]): only the standard deviations are learned, the inverse
//! lengthscales of an RBF kernel.
//!
//! **Implicitly** ([`ImplicitDensity`]): a small network turns noise into points,
//! $$w = \operatorname{sign}(z) \odot \mathrm{NN}(|z|),$$
//! so that the density of $w$ can take any shape and needs no formula; only draws from it are ever
//! used. Being odd in $z$, the network keeps the density symmetric. The noise comes from a
//! posterior that an [`InferenceNetwork`] reads off the queries and keys at hand,
//! $z = \mu + \sigma \odot x$ ([`reparameterise()`]), so the kernel adapts to the example. What keeps
//! the posterior from drifting off is its divergence from the prior ([`kl_mean_field`]), weighed
//! against the likelihood in the objective. Where a causal mask forbids to look at the whole sequence,
//! an [`UnconditionalPosterior`] takes the network's place.
//!
//! A [`Source`] puts these parts together: [`Direct`] points that are parameters, or [`Implicit`] ones
//! that a copula couples over the heads. Attention over sequences and along the edges of graphs take
//! their points from there.
//!
//! Outside of attention, each of the three can be fitted to a given kernel or to samples of
//! functions ([`fit_stationary`], [`fit_nonstationary`]).
//!
//! Every function that can be trained through stands next to its vector-Jacobian product, in
//! closed form: nothing here needs an automatic differentiator. Randomness is always an argument,
//! either a generator or the draws themselves, so that a caller can correlate the draws over the
//! heads, or fix them.
//!
//! # Example
//!
//! From queries and keys to a kernel that was made for them:
//!
//! ```
//! use bochner_kernels::{SpectralPoints, kernel_matrix};
//! use bochner_numerics::{Seed, standard_normal};
//! use bochner_spectral::{Copula, Features, Implicit, Size, Source};
//! use bochner_spectral::ndarray::{Array4, s};
//!
//! let size = Size { heads: 2, width: 4 };
//! let mut normal = Seed::new(2021).stream("sequences");
//! let mut sequence = || Array4::from_shape_simple_fn((1, 2, 5, 4), || standard_normal(&mut normal));
//! let (q, k): (Array4<f64>, Array4<f64>) = (sequence(), sequence());
//!
//! let source = Implicit { points: 16, copula: Copula::Amortised, ..Implicit::default() };
//! let parameters = source.initial(size, &mut Seed::new(2021).stream("initial values"))?;
//! let noise = source.noise(1, size, &mut Seed::new(2021).stream("noise"));
//! let drawn = source.draw(&Features::new(q.view(), k.view()), &parameters, noise)?;
//! assert!(drawn.kl[0] > 0.0);
//!
//! let [w1, w2] = [0, 1].map(|set| drawn.points[set].slice(s![0, 0, .., ..]));
//! let similarity = kernel_matrix(
//!     q.slice(s![0, 0, .., ..]),
//!     k.slice(s![0, 0, .., ..]),
//!     &SpectralPoints::Nonstationary { w1, w2 },
//! )?;
//! assert_eq!(similarity.dim(), (5, 5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Map
//!
//! | module | holds |
//! |---|---|
//! | `source` | [`Source`]: points of all heads from parameters, features and noise; [`Direct`], [`Implicit`] |
//! | `features` | [`Features`]: queries, keys, and which of their positions count |
//! | `implicit` | [`ImplicitDensity`]: from noise to spectral points |
//! | `inference` | [`InferenceNetwork`]: from queries and keys to the posterior of the noise |
//! | `unconditional` | [`UnconditionalPosterior`]: a posterior that sees nothing, as a causal mask asks for |
//! | `reparameterise` | [`reparameterise()`]: draws from the posterior |
//! | `divergence` | [`kl_mean_field`]: posterior against prior |
//! | `prior` | [`Prior`]: its density and draws |
//! | `direct` | [`direct_points`]: points that are parameters |
//! | `gaussian` | [`GaussianPoints`]: normal points of learned standard deviation |
//! | `fit` | [`fit_stationary`], [`fit_nonstationary`]: an [`Estimator`] fitted to a kernel ([`KernelValues`]) or to samples ([`empirical_kernel`]) |
//! | `affine` | [`AffineLayer`]: the networks' layers, and where they start ([`affine_init`]) |
//! | [`Error`] | what can be wrong with the arguments |

mod affine;
mod direct;
mod divergence;
mod error;
mod features;
mod fit;
mod gaussian;
mod implicit;
mod inference;
mod prior;
mod reparameterise;
mod source;
mod unconditional;

pub use affine::{AffineGradients, AffineLayer, affine_init};
pub use direct::{DirectInit, DirectPoints, direct_points};
pub use divergence::{KlGradients, kl_mean_field, kl_mean_field_vjp};
pub use error::Error;
pub use features::Features;
pub use fit::{
    DensityFit, DensityFitConfig, DirectEstimator, Estimator, GaussianEstimator, ImplicitEstimator,
    KernelValues, empirical_kernel, fit_nonstationary, fit_stationary,
};
pub use gaussian::{GaussianGradients, GaussianPoints, softmax_log_std};
pub use implicit::{ImplicitDensity, ImplicitGradients};
pub use inference::{InferenceGradients, InferenceNetwork, Inferred, InferredCotangents};
pub use ndarray;
pub use prior::Prior;
pub use rand;
pub use reparameterise::{ReparameteriseGradients, reparameterise, reparameterise_vjp};
pub use source::{
    Copula, Direct, Drawn, DrawnCotangents, Implicit, Latent, MOST_POINTS, ParameterSpec,
    Posterior, Preset, Size, Source, SourceGradients, Stationarity,
};
pub use unconditional::{
    MeanField, UnconditionalGradients, UnconditionalPosterior, unconditional_init,
};
