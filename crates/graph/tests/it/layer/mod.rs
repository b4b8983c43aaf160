//! Properties of the trainable layers.

mod attention;
mod attention_gradients;
mod convolution;
mod misuse;
mod setting;
mod settings_are_checked_when_read;
mod weights_of_pytorch_geometric;
