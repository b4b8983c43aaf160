//! The properties of operations, losses and optimiser rules, without a framework.

mod activation;
mod adam;
mod adam_config;
mod affine;
mod apply;
mod clip;
mod cross_entropy;
mod dropout;
mod embedding;
mod feed_forward;
mod layer_norm;
mod lbfgs;
mod linear_cross_entropy;
mod log_softmax;
mod mean;
mod mode;
mod rows;
mod schedule;
mod settings_are_checked_when_read;
mod spiking_neuron;
mod squared_error;
mod testing;
