//! Copulas as distributions: fits, draws, probabilities, marginals.

mod bivariate;
mod cdf;
mod config;
mod copula;
mod fit;
mod gaussian;
mod joint;
mod joint_draws;
mod joint_fit;
mod marginal;
mod maximum_likelihood;
mod measures;
mod nearest;
mod normal;
mod ranks;
mod reordered;
mod sampling;
mod special;
mod students_t;
mod students_t_draws;
mod univariate;

pub use cdf::{Lattice, Probability};
pub use config::CopulaConfig;
pub use copula::Copula;
pub use fit::CopulaFit;
pub use gaussian::GaussianCopula;
pub use joint::Joint;
pub use joint_fit::{Dependence, JointFit, JointOptions};
pub use marginal::{LogTails, Marginal};
pub use measures::{
    correlation_of_kendall, correlation_of_spearman, kendall_of_correlation,
    spearman_of_correlation,
};
pub use nearest::nearest_correlation;
pub use ranks::{kendall_tau_b, pseudo_observations};
pub use students_t::{StudentsTCopula, StudentsTGradients, students_t_log_density_vjp};
pub use univariate::{Empirical, Family, KernelDensity, Univariate};
