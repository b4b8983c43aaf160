//! What the trainable layers must do.
#![cfg(feature = "dfdx")]

mod attention;
mod attention_gradients;
mod misuse;
mod setting;
