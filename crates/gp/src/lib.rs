//! Exact Gaussian process regression, with any kernel of `bochner-kernels`.
//!
//! A Gaussian process says of a function that its values at any inputs are jointly normal, with a
//! covariance given by a kernel. Observations $y = f(x) + \varepsilon$ then leave it a Gaussian
//! process, and everything that one asks for follows in closed form from one Cholesky factor of
//!
//! $$A = K + (\sigma^2 + j) I, \qquad K_{ij} = k(x_i, x_j):$$
//!
//! the mean and the variance of the function anywhere, draws of the whole function, and how likely
//! the observations were, which is what the kernel's parameters are chosen by. It is the measure
//! of everything that learns a kernel in a layer: no approximation stands between the kernel and
//! the prediction.
//!
//! Three things are done so that results can be trusted:
//!
//! * **No silent jitter.** The jitter $j$ on the diagonal is an argument, [`Jitter`], fixed or
//!   escalating within bounds, and every result carries the value used. Where it does not do, the
//!   error names the jitter tried, the row and its pivot.
//! * **Gradients in closed form**, [`GaussianProcess::evidence_gradient`], along every parameter
//!   and along coordinates without bounds (logarithms of what must be positive), in which
//!   [`GaussianProcess::fit`] climbs.
//! * **Starts that differ.** Components of a spectral mixture that start alike stay alike for
//!   ever; [`spectral_mixture`] starts them on distinct lines of the data's own spectrum.
//!
//! Time is cubic in the number of observations, and memory quadratic; a few thousand are
//! comfortable. Everything is in double precision and on the calling thread.
//!
//! # Features
//!
//! `lapack` has the system's OpenBLAS factorise and solve, through ndarray-linalg, instead of faer
//! (Debian: `libopenblas-dev`). Nothing else changes: both agree to 1e-10. faer is the default
//! because it needs no C and no system library, and is no slower. OpenBLAS brings threads of its
//! own, and with them results that differ in their last digits from one number of threads to the
//! next; `OPENBLAS_NUM_THREADS` sets it.
//!
//! # Example
//!
//! A noisy sine, fitted, and predicted with error bars:
//!
//! ```
//! use bochner_gp::{FitConfig, Jitter, rbf};
//! use bochner_numerics::{Seed, standard_normal};
//! use ndarray::{Array, array};
//!
//! let mut stream = Seed::new(1).stream("noise");
//! let x = Array::linspace(0.0, 6.0, 40);
//! let y = x.mapv(|x: f64| x.sin() + 0.1 * standard_normal::<f64>(&mut stream));
//! let x = x.insert_axis(ndarray::Axis(1));
//!
//! let mut process = rbf(x.view(), y.view())?;
//! let config = FitConfig { steps: 300, learning_rate: 0.03, ..Default::default() };
//! let fit = process.fit(x.view(), y.view(), &config)?;
//! assert!(fit.trace[fit.best].evidence.log_likelihood > fit.trace[0].evidence.log_likelihood);
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
//! With a kernel of one's own the process is built from a [`GaussianProcessConfig`]:
//!
//! ```
//! use bochner_gp::{GaussianProcessConfig, Jitter};
//! use bochner_kernels::{Lengthscale, LinearConfig, MaternConfig, Smoothness, Sum};
//! use ndarray::array;
//!
//! let trend = LinearConfig { lengthscale: Lengthscale::Shared(5.0) }.build()?;
//! let rough = MaternConfig {
//!     smoothness: Smoothness::ThreeHalves,
//!     lengthscale: Lengthscale::Shared(1.0),
//! };
//! let process = GaussianProcessConfig {
//!     kernel: Box::new(Sum::of(vec![Box::new(trend), Box::new(rough.build()?)])?),
//!     mean: 0.0,
//!     noise: 0.01,
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
//! | [`process`] | [`GaussianProcess`], [`GaussianProcessConfig`], their parameters |
//! | [`jitter`] | [`Jitter`] |
//! | [`evidence`] | the marginal likelihood and its gradient |
//! | [`posterior`] | [`Posterior`], [`Prediction`] |
//! | [`joint`] | [`Joint`], [`Draws`] |
//! | [`fit`] | [`FitConfig`], [`Fit`] |
//! | [`ascent`] | [`Ascent`]: the steps of a fit, one at a time |
//! | [`presets`] | [`rbf`], [`spectral_mixture`] |
//! | [`error`] | [`Error`] |

mod adam;
pub mod ascent;
mod check;
mod cholesky;
mod dense;
pub mod error;
pub mod evidence;
pub mod fit;
pub mod jitter;
pub mod joint;
pub mod posterior;
pub mod presets;
pub mod process;
mod symmetric;
#[cfg(test)]
mod testing;

pub use ascent::Ascent;
pub use error::Error;
pub use evidence::{Evidence, EvidenceGradient};
pub use fit::{Fit, FitConfig, Step};
pub use jitter::Jitter;
pub use joint::{Draws, Joint};
pub use posterior::{Posterior, Prediction};
pub use presets::{rbf, spectral_mixture};
pub use process::{GaussianProcess, GaussianProcessConfig};
