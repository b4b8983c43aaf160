//! Gaussian process regression, exact and sparse, with any kernel of `bochner-kernels`.
//!
//! Under a Gaussian process, the values of a function at any inputs are jointly normal, with a
//! covariance given by a kernel. Given observations $y = f(x) + \varepsilon$, the function is again a
//! Gaussian process, and everything about it follows in closed form from one Cholesky factor of
//!
//! $$A = K + (\sigma^2 + j) I, \qquad K_{ij} = k(x_i, x_j):$$
//!
//! the mean and the variance of the function anywhere, draws of the whole function, and the
//! probability of the observations, by which the kernel's parameters are chosen. No approximation
//! stands between the kernel and the prediction, so that layers which learn a kernel can be measured
//! against it.
//!
//! Three decisions make the results trustworthy:
//!
//! * **No silent jitter.** The jitter $j$ on the diagonal is an argument, [`Jitter`], fixed or
//!   escalating within bounds, and every result carries the value used. If it does not suffice, the
//!   error names the jitter tried, the row and its pivot.
//! * **Gradients in closed form**, [`GaussianProcess::evidence_gradient`], along every parameter
//!   and along coordinates without bounds (logarithms of what must be positive). [`GaussianProcess::fit`] climbs
//!   in them by L-BFGS, and its report tells whether it converged.
//! * **Starts that differ.** Components of a spectral mixture that start alike stay alike for
//!   ever; [`spectral_mixture_process`] starts them on distinct lines of the data's own spectrum.
//!
//! Time is cubic in the number of observations, and memory quadratic; a few thousand are
//! comfortable. A [`SparseProcess`] takes tens of thousands, through inducing points. Processes and posteriors are
//! data that serde reads and writes. Everything is in double precision. Gram matrices are split among the threads of
//! rayon's current pool, with the same result for any number of them; factors are computed on the calling thread,
//! unless the feature `lapack` has OpenBLAS do it.
//!
//! # Features
//!
//! `lapack` has the system's OpenBLAS factorise and solve instead of faer: see [`bochner_dense`].
//!
//! The crates whose types appear in arguments are re-exported: [`ndarray`] and [`rand`].
//!
//! # Example
//!
//! A noisy sine, fitted, and predicted with error bars:
//!
//! ```
//! use bochner_gp::ndarray::{Array, Axis, array};
//! use bochner_gp::{FitConfig, Jitter, rbf_process};
//! use bochner_numerics::{Seed, standard_normal};
//!
//! let mut stream = Seed::new(1).stream("noise");
//! let x = Array::linspace(0.0, 6.0, 40);
//! let y = x.mapv(|x: f64| x.sin() + 0.1 * standard_normal::<f64>(&mut stream));
//! let x = x.insert_axis(Axis(1));
//!
//! let mut process = rbf_process(x.view(), y.view())?;
//! let fit = process.fit(x.view(), y.view(), &FitConfig::default())?;
//! assert!(fit.stop.is_converged(), "{fit}");
//! assert!((process.noise().sqrt() - 0.1).abs() < 0.03);
//!
//! let posterior = process.condition(x.view(), y.view())?;
//! let at = array![[1.0], [2.5], [9.0]];
//! let predicted = posterior.predict(at.view())?;
//! for i in 0..2 {
//!     let (mean, bar) = (predicted.mean[i], 3.0 * predicted.latent_variance[i].sqrt());
//!     assert!((mean - at[[i, 0]].sin()).abs() < bar && bar < 0.3);
//! }
//! // Far from all observations the bars are wide.
//! assert!(predicted.latent_variance[2] > 10.0 * predicted.latent_variance[0]);
//!
//! let jitter = Jitter::Escalating { first: 1e-12, last: 1e-6 };
//! let draws = posterior.joint(at.view())?.sample(5, jitter, &mut stream)?;
//! assert_eq!(draws.values.dim(), (5, 3));
//! # Ok::<(), bochner_gp::Error>(())
//! ```
//!
//! A process with any other kernel is built from a [`GaussianProcessConfig`]:
//!
//! ```
//! use bochner_gp::ndarray::array;
//! use bochner_gp::{GaussianProcessConfig, Jitter};
//! use bochner_kernels::{Lengthscale, LinearConfig, MaternConfig, Smoothness};
//!
//! let trend = LinearConfig { lengthscale: Lengthscale::Shared(5.0) }.build()?;
//! let rough = MaternConfig {
//!     smoothness: Smoothness::ThreeHalves,
//!     lengthscale: Lengthscale::Shared(1.0),
//! };
//! let process = GaussianProcessConfig {
//!     kernel: trend + rough.build()?,
//!     mean: 0.0,
//!     noise: 0.01,
//!     observation_noise: None,
//!     jitter: Jitter::Fixed(0.0),
//! }
//! .build()?;
//! let got = process.evidence_gradient(array![[0.0], [1.0]].view(), array![0.2, 0.4].view())?;
//! // Along the mean, the noise, and the two lengthscales.
//! assert_eq!(got.coordinates.len(), 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Map
//!
//! | module | holds |
//! |---|---|
//! | `process` | [`GaussianProcess`], [`GaussianProcessConfig`], their parameters |
//! | `jitter` | [`Jitter`] |
//! | `evidence` | [`Evidence`], [`EvidenceGradient`]: the marginal likelihood and its gradient |
//! | `posterior` | [`Posterior`], [`Prediction`] |
//! | `multivariate_normal` | [`MultivariateNormal`], [`Draws`] |
//! | `fit` | [`FitConfig`], [`Optimiser`], [`Prior`], [`Fit`] |
//! | `sparse` | [`SparseProcess`], [`SparsePosterior`], [`inducing_points`] |
//! | `presets` | [`rbf_process`], [`ard_process`], [`seasonal_process`], [`spectral_mixture_process`] |
//! | `saved` | [`from_json`] |
//! | `error` | [`Error`] |

mod error;
mod evidence;
mod fit;
mod gram;
mod jitter;
mod multivariate_normal;
mod posterior;
mod presets;
mod process;
mod saved;
mod sparse;

pub use bochner_ops::{AdamConfig, Stop};
pub use error::Error;
pub use evidence::{Evidence, EvidenceGradient};
pub use fit::{Fit, FitConfig, Optimiser, Prior, Start, Step};
pub use jitter::Jitter;
pub use multivariate_normal::{Draws, MultivariateNormal};
pub use ndarray;
pub use posterior::{Posterior, Prediction};
pub use presets::{ard_process, rbf_process, seasonal_process, spectral_mixture_process};
pub use process::{GaussianProcess, GaussianProcessConfig};
pub use rand;
pub use saved::{FromJson, from_json};
pub use sparse::{SparseGradient, SparsePosterior, SparseProcess, inducing_points};
