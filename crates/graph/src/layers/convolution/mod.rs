//! Graph convolution as an operation, and as a trainable layer on the tape of dfdx.

mod config;
#[cfg(feature = "dfdx")]
mod layer;
mod operation;

pub use config::GraphConvolutionConfig;
#[cfg(feature = "dfdx")]
pub use layer::GraphConvolution;
pub use operation::{GraphConvolutionOperation, Saved as GraphConvolutionSaved};
