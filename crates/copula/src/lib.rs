//! The Gaussian copula, which ties the heads of an attention layer together, or any marginals.
//!
//! A copula is what is left of a joint distribution once its marginals are taken out: the
//! dependence alone. In MIKAN the latent variables behind the spectral points of the heads have
//! Gaussian marginals, one per head and latent dimension, and for each latent dimension a Gaussian
//! copula couples the `M` heads. The copula is given by a correlation matrix, and the correlation
//! matrix by a lower-triangular factor whose rows have norm one:
//!
//! $$\mathrm{Corr} = \hat L \hat L^\top, \qquad \hat L_m = L_m / |L_m|$$
//!
//! Any lower-triangular matrix with a positive diagonal will do for *L*; the unit diagonal and
//! positive definiteness of the correlation come by construction, so that a factor can be trained
//! without constraints.
//!
//! Three things follow from it, and they are this crate:
//!
//! * **Draws.** Because the marginals are Gaussian, the copula's quantile functions cancel:
//!   [`joint_posterior`] mixes independent normal numbers over the heads and scales them. With the
//!   identity as factor it is the independent posterior, value for value.
//! * **A divergence in closed form.** The whole divergence from an independent prior is the
//!   marginals' (the mean field's) plus [`dependence_kl`], a sum of logarithms of a diagonal.
//! * **Gradients.** Every function stands next to its vector-Jacobian product (`*_vjp`), in closed
//!   form, so that nothing here needs a tape.
//!
//! The factor itself is either [`free`], parameters of a layer, or [`amortised`], a function of
//! the features, one per example.
//!
//! Outside of attention the same copula joins any marginals, and that is the other half of this
//! crate. A [`GaussianCopula`] is a checked correlation matrix with its density, distribution
//! function, draws and rank correlations; it can be fitted to observations without knowing their
//! marginals. A [`Joint`] puts marginals of any family of statrs under it.
//!
//! # Example
//!
//! ```
//! use bochner_copula::{correlation, dependence_kl, free, joint_posterior, normalise};
//! use bochner_numerics::{Seed, standard_normal};
//! use ndarray::{Array3, Array4, Axis, array};
//!
//! // One latent dimension, two heads.
//! let raw = array![[[0.0, 0.0], [0.75, 0.0]]];
//! let lh = normalise(free(raw.view())?.view())?;
//! let corr = correlation(lh.view())?;
//! assert!((corr[[0, 0, 1]] - 0.6_f64).abs() < 1e-12);
//!
//! // Two examples, five draws each: mean 0, standard deviation 1, correlated over the heads.
//! let lh = lh.insert_axis(Axis(0));
//! let mut stream = Seed::new(1).stream("posterior");
//! let eps = Array4::from_shape_simple_fn((2, 2, 5, 1), || standard_normal(&mut stream));
//! let (mu, log_sigma) = (Array3::zeros((2, 2, 1)), Array3::zeros((2, 2, 1)));
//! let draw = joint_posterior(mu.view(), log_sigma.view(), lh.view(), eps.view())?;
//! assert_eq!(draw.z.dim(), (2, 2, 5, 1));
//!
//! // What the dependence costs.
//! assert!((dependence_kl(lh.view())?[0] + 0.8_f64.ln()).abs() < 1e-12);
//! # Ok::<(), bochner_copula::Error>(())
//! ```
//!
//! Data with marginals of two kinds, whose dependence is estimated from the ranks alone:
//!
//! ```
//! use bochner_copula::{GaussianCopula, Joint, Marginal};
//! use bochner_numerics::Seed;
//! use ndarray::array;
//! use statrs::distribution::{Gamma, Normal};
//!
//! let copula = GaussianCopula::from_correlation(array![[1.0, 0.6], [0.6, 1.0]].view())?;
//! let marginals: Vec<Box<dyn Marginal>> = vec![
//!     Box::new(Normal::new(0.0, 1.0).unwrap()),
//!     Box::new(Gamma::new(2.0, 1.0).unwrap()),
//! ];
//! let joint = Joint::new(copula, marginals)?;
//! let z = joint.sample(2000, &mut Seed::new(1).stream("data"));
//!
//! let fitted = GaussianCopula::fit_kendall(z.view())?;
//! assert!((fitted.correlation()[[0, 1]] - 0.6).abs() < 0.05);
//! # Ok::<(), bochner_copula::Error>(())
//! ```
//!
//! # Features
//!
//! `lapack` has the system's OpenBLAS factorise, solve and decompose, through ndarray-linalg
//! (Debian: `libopenblas-dev`). Nothing else changes: both agree to 1e-10. The default is plain
//! loops, which need no C and no system library and are faster on matrices this small.
//!
//! # Map
//!
//! | module | holds |
//! |---|---|
//! | [`factor`] | [`normalise`], [`correlation`], [`half_neg_log_det`] |
//! | [`parametrisation`] | [`free`], [`amortised`] |
//! | [`posterior`] | [`joint_posterior`] |
//! | [`divergence`] | [`dependence_kl`] |
//! | [`gaussian`] | [`GaussianCopula`]: constructors, density, divergence, draws, fits |
//! | [`config`] | [`CopulaConfig`], what a copula is written as |
//! | [`cdf`] | its distribution function: [`Lattice`], [`Probability`] |
//! | [`density`] | [`copula_log_density`] with its gradients |
//! | [`normal_joint`] | [`normal_joint_log_density`] with its gradients |
//! | [`joint`], [`marginal`] | [`Joint`], [`Marginal`] |
//! | [`measures`] | Kendall's tau and Spearman's rho in closed form |
//! | [`ranks`] | [`pseudo_observations`], [`kendall_tau_b`] |
//! | [`nearest`] | [`nearest_correlation`] |
//! | [`error`] | [`Error`] |

pub mod cdf;
pub mod config;
mod dense;
pub mod density;
pub mod divergence;
pub mod error;
pub mod factor;
mod fit;
pub mod gaussian;
pub mod joint;
mod joint_draws;
pub mod marginal;
pub mod measures;
pub mod nearest;
mod normal;
pub mod normal_joint;
pub mod parametrisation;
pub mod posterior;
pub mod ranks;
mod sampling;
mod symmetric;

pub use cdf::{Lattice, Probability};
pub use config::CopulaConfig;
pub use density::{CopulaGradients, copula_log_density, copula_log_density_vjp};
pub use divergence::{dependence_kl, dependence_kl_vjp};
pub use error::Error;
pub use factor::{
    correlation, correlation_vjp, half_neg_log_det, half_neg_log_det_vjp, normalise, normalise_vjp,
};
pub use gaussian::GaussianCopula;
pub use joint::Joint;
pub use marginal::Marginal;
pub use measures::{
    correlation_of_kendall, correlation_of_spearman, kendall_of_correlation,
    spearman_of_correlation,
};
pub use nearest::nearest_correlation;
pub use normal_joint::{
    NormalJointGradients, normal_joint_log_density, normal_joint_log_density_vjp,
};
pub use parametrisation::{AmortisedGradients, amortised, amortised_vjp, free, free_vjp};
pub use posterior::{JointDraw, JointGradients, joint_posterior, joint_posterior_vjp};
pub use ranks::{kendall_tau_b, pseudo_observations};
