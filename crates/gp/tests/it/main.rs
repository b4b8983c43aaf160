//! The properties of Gaussian processes.

mod a_spectral_mixture_goes_on;
mod agrees_with_scikit_learn;
mod agrees_with_scikit_learn_on_housing;
mod evidence;
mod fit;
mod inducing;
mod jitter;
mod multivariate_normal;
mod order_changes_nothing;
mod posterior;
mod process;
mod rbf_preset;
mod saved_files_are_read_again;
mod settings_are_checked_when_read;
mod sparse;
mod spectral_mixture_preset;
mod testing;
mod units_of_carbon_dioxide_do_not_matter;
