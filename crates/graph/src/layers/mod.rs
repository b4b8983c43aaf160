//! Layers: as operations, and trainable on the tape of dfdx.

mod attention;
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
pub use convolution::GraphConvolution;
pub use convolution::{GraphConvolutionConfig, GraphConvolutionOperation, GraphConvolutionSaved};
pub use error::LayerError;
pub use nodes::{AttributedGraph, Nodes};

use bochner_numerics::{ArgumentError, DropoutMask, argument};
use bochner_ops::{Mode, dropout_mask};
use bochner_spectral::ParameterSpec;

/// Refuses parameters of another number or of other shapes than a layer has.
fn check_parameters(
    expected: Vec<ParameterSpec>,
    shapes: &[&[usize]],
) -> Result<(), ArgumentError> {
    argument::shape("parameters", &[expected.len()], &[shapes.len()])?;
    for (spec, shape) in expected.into_iter().zip(shapes) {
        argument::shape(spec.name, &spec.shape, shape)?;
    }
    Ok(())
}

/// The dropout of a pass, or `None` where nothing is dropped.
fn mask(rate: f64, mode: Mode) -> Option<DropoutMask> {
    dropout_mask(rate, mode).expect("a rate that its layer has checked")
}
