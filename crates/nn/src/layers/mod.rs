//! Layers of which each forward pass is one operation on the tape.

mod activation;
mod dropout;
mod embedding;
mod feed_forward;
mod initial;
mod last_axis;
mod layer_norm;
mod linear;
mod mean;

pub use activation::activate;
pub use dropout::Dropout;
pub use embedding::Embedding;
pub use feed_forward::{FeedForward, FeedForwardConfig};
pub use initial::UniformWithin;
pub use last_axis::EndsWith;
pub use layer_norm::LayerNorm;
pub use linear::Linear;
pub use mean::mean_over_time;

/// Names for building layers of compile-time sizes with `dev.build_module::<..>()`.
pub mod builders {
    pub use super::feed_forward::builder::FeedForward;
    pub use super::layer_norm::builder::LayerNorm;
    pub use super::linear::builder::Linear;
}
