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

use crate::Error;
use crate::error::in_range;
use bochner_numerics::DropoutMask;
use bochner_ops::Mode;

/// `Ok` if elements can be dropped at this rate.
fn check_rate(name: &'static str, rate: f64) -> Result<(), Error> {
    let range = "at least 0 and below 1";
    in_range((0.0..1.0).contains(&rate), name, range, rate)
}

/// The mask of a pass, if it has one.
fn mask(rate: f64, mode: Mode) -> Option<DropoutMask> {
    match mode {
        Mode::Training(seed) if rate > 0.0 => {
            Some(DropoutMask::new(rate, seed).expect("a rate that its layer has checked"))
        }
        _ => None,
    }
}
