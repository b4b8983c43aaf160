//! The properties of spectral densities and of their fits.

mod a_spectral_mixture_is_recovered;
mod common;
mod direct_points_start_near_softmax;
mod divergence_is_positive;
mod implicit_points_are_odd;
mod positions_not_kept_change_nothing;
mod sources_agree_with_finite_differences;
mod thread_count_changes_nothing;
