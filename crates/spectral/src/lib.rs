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
//! against the likelihood in the objective ([`elbo()`]). Where a causal mask forbids to look at the
//! whole sequence, an [`UnconditionalPosterior`] takes the network's place.
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
//! use bochner_spectral::{ImplicitDensity, InferenceNetwork, kl_mean_field, linear_init};
//! use bochner_spectral::reparameterise;
//! use ndarray::{Array4, s};
//!
//! let (batch, heads, length, width, points) = (1, 2, 5, 4, 16);
//! let mut init = Seed::new(2021).stream("initial values");
//! let mut linear = |outputs, inputs| linear_init::<f64>(outputs, inputs, &mut init);
//! let (hidden, mu, log_sigma) =
//!     (linear(width, 2 * width), linear(width, width), linear(width, width));
//! let (first, second, third) =
//!     (linear(width, width), linear(width, width), linear(width, width));
//!
//! let mut noise = Seed::new(2021).stream("noise");
//! let mut normal = |shape| Array4::from_shape_simple_fn(shape, || standard_normal(&mut noise));
//! let (q, k): (Array4<f64>, Array4<f64>) =
//!     (normal((batch, heads, length, width)), normal((batch, heads, length, width)));
//!
//! let prior_std = 0.1;
//! let network = InferenceNetwork {
//!     w1: hidden.0.view(), b1: hidden.1.view(),
//!     w2: mu.0.view(), b2: mu.1.view(),
//!     w3: log_sigma.0.view(), b3: log_sigma.1.view(),
//!     slope: 0.2,
//!     prior_std,
//! };
//! let posterior = network.infer(q.view(), k.view(), None, None)?;
//! let kl = kl_mean_field(posterior.mu.view(), posterior.log_sigma.view(), prior_std)?;
//! assert!(kl[0] > 0.0);
//!
//! let x = normal((batch, heads, points, width));
//! let z = reparameterise(posterior.mu.view(), posterior.log_sigma.view(), x.view())?;
//! let density = ImplicitDensity {
//!     w1: first.0.view(), b1: first.1.view(),
//!     w2: second.0.view(), b2: second.1.view(),
//!     w3: third.0.view(), b3: third.1.view(),
//!     slope: 0.2,
//! };
//! let w = density.points(z.slice(s![0, 0, .., ..]))?;
//! let similarity = kernel_matrix(
//!     q.slice(s![0, 0, .., ..]),
//!     k.slice(s![0, 0, .., ..]),
//!     &SpectralPoints::Stationary { w: w.view() },
//! )?;
//! assert_eq!(similarity.dim(), (length, length));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Map
//!
//! | module | holds |
//! |---|---|
//! | [`implicit`] | [`ImplicitDensity`]: from noise to spectral points |
//! | [`inference`] | [`InferenceNetwork`]: from queries and keys to the posterior of the noise |
//! | [`unconditional`] | [`UnconditionalPosterior`]: a posterior that sees nothing, as a causal mask asks for |
//! | [`reparameterise`](mod@reparameterise) | draws from the posterior |
//! | [`divergence`] | [`kl_mean_field`]: posterior against prior |
//! | [`prior`] | [`Prior`]: its density and draws |
//! | [`elbo`](mod@elbo) | the objective |
//! | [`direct`] | [`direct_points`]: points that are parameters |
//! | [`gaussian`] | [`GaussianPoints`]: normal points of learned standard deviation |
//! | [`fit`] | [`fit_stationary`], [`fit_nonstationary`]: an [`Estimator`] fitted to a kernel ([`KernelValues`]) or to samples ([`empirical_kernel`]) |
//! | [`linear`] | [`linear_init`]: where the networks start |
//! | [`Error`] | what can be wrong with the arguments |

pub mod direct;
pub mod divergence;
pub mod elbo;
mod error;
pub mod fit;
pub mod gaussian;
pub mod implicit;
pub mod inference;
pub mod linear;
mod means;
pub mod prior;
pub mod reparameterise;
#[cfg(test)]
mod testing;
pub mod unconditional;

pub use direct::{DirectInit, DirectPoints, direct_points};
pub use divergence::{KlGradients, kl_mean_field, kl_mean_field_vjp};
pub use elbo::{ElboGradients, elbo, elbo_vjp};
pub use error::Error;
pub use fit::{
    DensityFit, DensityFitConfig, DirectEstimator, Estimator, GaussianEstimator, ImplicitEstimator,
    KernelValues, empirical_kernel, fit_nonstationary, fit_stationary,
};
pub use gaussian::{GaussianGradients, GaussianPoints, softmax_log_std};
pub use implicit::{ImplicitDensity, ImplicitGradients};
pub use inference::{InferenceGradients, InferenceNetwork, Inferred, InferredCotangents};
pub use linear::linear_init;
pub use prior::Prior;
pub use reparameterise::{ReparameteriseGradients, reparameterise, reparameterise_vjp};
pub use unconditional::{
    MeanField, UnconditionalGradients, UnconditionalPosterior, unconditional_init,
};
