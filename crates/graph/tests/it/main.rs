//! The properties of attention along edges and of its layers.

mod conformance;
#[cfg(feature = "dfdx")]
mod layer;
mod layers_are_operations;
mod proposition_2_kernel_scores_become_those_of_gat;
