//! The properties of factors, copulas, fits and draws.

mod agrees_with_scipy_and_statsmodels;
mod draws_follow_the_closed_forms;
mod every_factor_gives_a_correlation_matrix;
mod every_fit_gives_a_copula;
mod fits_and_draws_agree_with_statsmodels;
mod heads_are_mixed;
mod probabilities_lie_between_0_and_1;
mod settings_are_checked_when_read;
mod students_t_copulas_agree_with_statsmodels;
mod univariate_families_keep_their_tails;
