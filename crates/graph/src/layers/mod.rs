//! Layers: as operations, and trainable on the tape of dfdx.

mod attention;
#[cfg(feature = "dfdx")]
mod convolution;
mod error;
mod glorot;
mod nodes;
mod rows;

pub use attention::{
    AttentionKind, Bias, EdgeKernel, GraphAttentionConfig, GraphAttentionOperation,
    GraphAttentionSaved, Residual,
};
#[cfg(feature = "dfdx")]
pub use attention::{GraphAttended, GraphAttention, GraphInspection};
#[cfg(feature = "dfdx")]
pub use convolution::{GraphConvolution, GraphConvolutionConfig};
pub use error::LayerError;
pub use nodes::{AttributedGraph, Nodes};

use bochner_numerics::DropoutMask;
use bochner_ops::Mode;

/// The dropout of a pass, or `None` where nothing is dropped.
fn mask(rate: f64, mode: Mode) -> Option<DropoutMask> {
    match mode {
        Mode::Training(seed) if rate > 0.0 => {
            Some(DropoutMask::new(rate, seed).expect("a rate that its layer has checked"))
        }
        _ => None,
    }
}
