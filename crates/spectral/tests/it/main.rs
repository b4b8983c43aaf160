//! The properties of spectral densities and of their fits.

mod a_spectral_mixture_is_recovered;
mod affine;
mod common;
mod direct;
mod divergence;
mod divergence_is_positive;
mod fit;
mod gaussian;
mod implicit_points_are_odd;
mod inference_reads_what_is_kept;
mod prior;
mod reparameterise;
mod settings_are_checked_when_read;
mod sources_agree_with_finite_differences;
mod target;
mod thread_count_changes_nothing;
mod unconditional;
