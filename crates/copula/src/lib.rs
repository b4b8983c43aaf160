//! Copulas: dependence between variables, whatever their marginals.
//!
//! A copula is what is left of a joint distribution once its marginals are taken out: the dependence
//! alone. A [`GaussianCopula`] is a checked correlation matrix with its density, distribution function,
//! draws and rank correlations; a [`StudentsTCopula`] has degrees of freedom too, and dependence in the tails. Both
//! are fitted to observations without knowing their marginals.
//!
//! A [`Joint`] is a copula over marginals: a [`Univariate`] family, a distribution of statrs, or any [`Marginal`].
//! [`Joint::fit`] fits one to a table with named columns; it draws, conditions, has a density, and is saved as serde
//! data.
//!
//! The correlation matrix is given by a lower-triangular factor whose rows have norm one:
//!
//! $$\mathrm{Corr} = \hat L \hat L^\top, \qquad \hat L_m = L_m / |L_m|$$
//!
//! Any lower-triangular matrix with a positive diagonal will do for *L*: the unit diagonal and the
//! positive definiteness of the correlation come by construction, so that a factor can be trained
//! without constraints. [`normalise`], [`correlation`] and [`copula_log_density`] stand next to their
//! vector-Jacobian products (`*_vjp`), in closed form, so that nothing here needs a tape.
//!
//! The module [`heads`] holds what MIKAN makes of it: a copula that couples the heads of an attention
//! layer.
//!
//! # Example
//!
//! Data with marginals of two kinds, whose dependence is estimated from the ranks alone. The crates
//! whose types appear in arguments are re-exported: [`ndarray`], [`rand`] and [`statrs`], whose
//! distributions have to come from this version.
//!
#![cfg_attr(feature = "distributions", doc = "```")]
#![cfg_attr(not(feature = "distributions"), doc = "```ignore")]
//! use bochner_copula::ndarray::array;
//! use bochner_copula::statrs::distribution::{Gamma, Normal};
//! use bochner_copula::{GaussianCopula, Joint, Marginal};
//! use bochner_numerics::Seed;
//!
//! let copula = GaussianCopula::from_correlation(array![[1.0, 0.6], [0.6, 1.0]].view())?;
//! let marginals: Vec<Box<dyn Marginal>> = vec![
//!     Box::new(Normal::new(0.0, 1.0).unwrap()),
//!     Box::new(Gamma::new(2.0, 1.0).unwrap()),
//! ];
//! let joint = Joint::new(copula, marginals)?;
//! let z = joint.sample(2000, &mut Seed::new(1).stream("data"))?;
//!
//! let fitted = GaussianCopula::fit_kendall(z.view())?.copula;
//! assert!((fitted.correlation()[[0, 1]] - 0.6).abs() < 0.05);
//! # Ok::<(), bochner_copula::Error>(())
//! ```
//!
//! # Features
//!
//! * `distributions`, which is on by default: [`GaussianCopula`], [`Joint`] and all that belongs to them. Without it
//!   the crate needs neither `bochner-dense` nor statrs, and has factors, [`copula_log_density`] and [`heads`].
//! * `lapack` has the system's OpenBLAS factorise and decompose instead of faer: see [`bochner_dense`].
//!
//! # Map
//!
//! | module | holds |
//! |---|---|
//! | `density` | [`copula_log_density`] with its gradients |
//! | `factor` | [`normalise`], [`correlation`], [`half_neg_log_det`] |
//! | `distributions` | the rows down to `nearest`, behind the feature of that name |
//! | `gaussian` | [`GaussianCopula`]: constructors, density, divergence, draws |
//! | `fit` | its fits to observations, and [`CopulaFit`], which tells how good an estimate was |
//! | `config` | [`CopulaConfig`], the serialised form of a copula |
//! | `cdf` | the distribution function: [`Lattice`], [`Probability`] |
//! | `bivariate` | the distribution function in two dimensions, exact |
//! | `maximum_likelihood` | [`GaussianCopula::fit_maximum_likelihood`] |
//! | `students_t` | [`StudentsTCopula`], [`students_t_log_density_vjp`], [`StudentsTGradients`] |
//! | `copula` | [`Copula`], one of the two |
//! | `joint`, `joint_fit` | [`Joint`]; [`JointOptions`], [`JointFit`] |
//! | `marginal` | [`Marginal`], [`LogTails`] |
//! | `univariate` | [`Univariate`], its fits by [`Family`], [`Empirical`], [`KernelDensity`] |
//! | `special` | incomplete gamma and beta functions as logarithms |
//! | `measures` | [`kendall_of_correlation`], [`spearman_of_correlation`] and their inverses |
//! | `ranks` | [`pseudo_observations`], [`kendall_tau_b`] |
//! | `nearest` | [`nearest_correlation`] |
//! | [`heads`] | factors, posteriors and divergences over the heads of an attention layer |
//! | `error` | [`Error`] |

mod density;
#[cfg(feature = "distributions")]
mod distributions;
mod error;
mod factor;
pub mod heads;
mod triangular;

pub use density::{CopulaGradients, copula_log_density, copula_log_density_vjp};
#[cfg(feature = "distributions")]
pub use distributions::{
    Copula, CopulaConfig, CopulaFit, Dependence, Empirical, Family, GaussianCopula, Joint,
    JointFit, JointOptions, KernelDensity, Lattice, LogTails, Marginal, Probability,
    StudentsTCopula, StudentsTGradients, Univariate, correlation_of_kendall,
    correlation_of_spearman, kendall_of_correlation, kendall_tau_b, nearest_correlation,
    pseudo_observations, spearman_of_correlation, students_t_log_density_vjp,
};
pub use error::Error;
pub use factor::{
    correlation, correlation_vjp, half_neg_log_det, half_neg_log_det_vjp, normalise, normalise_vjp,
};
pub use ndarray;
pub use rand;
#[cfg(feature = "distributions")]
pub use statrs;
