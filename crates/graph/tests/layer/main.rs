//! What the trainable layers must do.
#![cfg(feature = "dfdx")]

mod attention;
mod attention_gradients;
mod convolution;
mod misuse;
mod pytorch_geometric;
mod setting;
