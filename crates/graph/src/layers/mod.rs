//! Trainable layers on the tape of dfdx.

mod attention;
mod convolution;
mod error;
mod glorot;
mod nodes;
mod rows;

pub use attention::{
    AttentionKind, Bias, GraphAttended, GraphAttention, GraphAttentionConfig, GraphInspection,
    Residual,
};
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
