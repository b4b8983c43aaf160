//! The trainable layer on the tape of dfdx.

mod composed;

mod decoding_continues_the_sequence;
mod inference_is_the_layer;
mod it_agrees_with_composed_operations;
mod it_is_a_module_of_dfdx;
mod misuse_is_named;
