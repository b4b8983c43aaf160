//! The properties of factors, copulas, fits and draws.

#[cfg(feature = "distributions")]
mod agrees_with_scipy_and_statsmodels;
#[cfg(feature = "distributions")]
mod cdf;
#[cfg(feature = "distributions")]
mod config;
mod density;
mod divergence;
#[cfg(feature = "distributions")]
mod every_factor_gives_a_correlation_matrix;
#[cfg(feature = "distributions")]
mod every_fit_gives_a_copula;
mod factor;
#[cfg(feature = "distributions")]
mod fit;
#[cfg(feature = "distributions")]
mod fits_and_draws_agree_with_statsmodels;
#[cfg(feature = "distributions")]
mod gaussian;
mod heads_are_mixed;
#[cfg(feature = "distributions")]
mod joint;
#[cfg(feature = "distributions")]
mod joint_draws;
#[cfg(feature = "distributions")]
mod joint_fit;
#[cfg(feature = "distributions")]
mod marginal;
#[cfg(feature = "distributions")]
mod maximum_likelihood;
#[cfg(feature = "distributions")]
mod measures;
#[cfg(feature = "distributions")]
mod nearest;
#[cfg(feature = "distributions")]
mod normal_joint;
mod parametrisation;
mod posterior;
#[cfg(feature = "distributions")]
mod probabilities_lie_between_0_and_1;
#[cfg(feature = "distributions")]
mod ranks;
#[cfg(feature = "distributions")]
mod sampling;
#[cfg(feature = "distributions")]
mod students_t_copulas_agree_with_statsmodels;
mod testing;
#[cfg(feature = "distributions")]
mod univariate_families_keep_their_tails;
