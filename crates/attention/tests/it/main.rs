//! The properties of attention, of its mechanisms and of its layer.

mod conformance;
#[cfg(feature = "dfdx")]
mod layer;
mod proposition_1_softmax_is_rbf_times_magnitude;
mod proposition_2_graph_attention_is_two_kernels;
mod proposition_5_small_p;
