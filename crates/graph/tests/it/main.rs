//! The properties of attention along edges and of its layers.

mod conformance;
mod convolution;
mod features;
mod graphs;
#[cfg(feature = "dfdx")]
mod layer;
mod layers_are_operations;
mod pooling;
mod proposition_2_kernel_scores_become_those_of_gat;
mod sampling;
