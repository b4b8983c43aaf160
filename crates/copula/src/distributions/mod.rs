//! Copulas as distributions: fits, draws, probabilities, marginals.

mod cdf;
mod config;
mod fit;
mod gaussian;
mod joint;
mod joint_draws;
mod marginal;
mod measures;
mod nearest;
mod normal;
mod ranks;
mod reordered;
mod sampling;

pub use cdf::{Lattice, Probability};
pub use config::CopulaConfig;
pub use fit::CopulaFit;
pub use gaussian::GaussianCopula;
pub use joint::Joint;
pub use marginal::Marginal;
pub use measures::{
    correlation_of_kendall, correlation_of_spearman, kendall_of_correlation,
    spearman_of_correlation,
};
pub use nearest::nearest_correlation;
pub use ranks::{kendall_tau_b, pseudo_observations};
