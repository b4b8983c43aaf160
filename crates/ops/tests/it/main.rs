//! Operations without a framework.

mod a_network_is_trained_on_slices;
mod settings_are_checked_when_read;
