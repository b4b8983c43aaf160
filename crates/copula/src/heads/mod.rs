//! The copula over the heads of an attention layer: MIKAN's joint posterior and what it costs.
//!
//! The latent variables behind the spectral points of the heads have Gaussian marginals, one per head
//! and latent dimension, and for each latent dimension a Gaussian copula couples the `M` heads. The
//! copula is given by a lower-triangular factor: [`free`] takes it from parameters of a layer,
//! [`amortised`] from the features of each example.
//!
//! * **Draws.** Because the marginals are Gaussian, the copula's quantile functions cancel:
//!   [`joint_posterior`] mixes independent normal numbers over the heads and scales them. With the
//!   identity as factor it is the independent posterior, value for value.
//! * **A divergence in closed form.** The divergence from an independent prior is the sum of the
//!   marginals' divergence (the mean field's) and [`dependence_kl`], a sum of logarithms of a diagonal.
//! * **Gradients.** Every function stands next to its vector-Jacobian product (`*_vjp`), in closed
//!   form.
//!
//! # Example
//!
//! ```
//! use bochner_copula::heads::{dependence_kl, free, joint_posterior};
//! use bochner_copula::ndarray::{Array3, Array4, Axis, array};
//! use bochner_copula::{correlation, normalise};
//! use bochner_numerics::{Seed, standard_normal};
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
//! // The cost of the dependence.
//! assert!((dependence_kl(lh.view())?[0] + 0.8_f64.ln()).abs() < 1e-12);
//! # Ok::<(), bochner_copula::Error>(())
//! ```

pub mod divergence;
pub mod normal_joint;
pub mod parametrisation;
pub mod posterior;

pub use divergence::{dependence_kl, dependence_kl_vjp};
pub use normal_joint::{
    NormalJointGradients, normal_joint_log_density, normal_joint_log_density_vjp,
};
pub use parametrisation::{AmortisedGradients, amortised, amortised_vjp, free, free_vjp};
pub use posterior::{JointDraw, JointGradients, joint_posterior, joint_posterior_vjp};
