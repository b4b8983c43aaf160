//! Operations without a framework.

mod a_network_is_trained_on_slices;
