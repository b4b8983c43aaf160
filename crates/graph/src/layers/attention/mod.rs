//! Graph attention as an operation, and as a trainable layer on the tape of dfdx.

mod arrays;
mod config;
mod kernel;
mod operation;
mod plan;
mod spectral_points;

#[cfg(feature = "dfdx")]
mod inspection;
#[cfg(feature = "dfdx")]
mod layer;
#[cfg(feature = "dfdx")]
mod pyg_names;

pub use config::{AttentionKind, Bias, GraphAttentionConfig, InitialMap, Residual};
pub use kernel::EdgeKernel;
pub use operation::{GraphAttentionOperation, Saved as GraphAttentionSaved};

#[cfg(feature = "dfdx")]
pub use inspection::GraphInspection;
#[cfg(feature = "dfdx")]
pub use layer::{GraphAttended, GraphAttention, GraphInput};
