//! Layers: as operations, and trainable on the tape of dfdx.

mod attention;
mod convolution;
mod error;
mod glorot;
mod nodes;
mod rows;

pub use attention::{
    AttentionKind, Bias, EdgeKernel, GraphAttentionConfig, GraphAttentionOperation,
    GraphAttentionSaved, InitialMap, Residual,
};
#[cfg(feature = "dfdx")]
pub use attention::{GraphAttended, GraphAttention, GraphInput, GraphInspection};
#[cfg(feature = "dfdx")]
pub use convolution::GraphConvolution;
pub use convolution::{GraphConvolutionConfig, GraphConvolutionOperation, GraphConvolutionSaved};
pub use error::LayerError;
pub(crate) use nodes::matrix;
pub use nodes::{AttributedGraph, Nodes, OperationGraph};

#[cfg(feature = "dfdx")]
use crate::{Error, error::expect_presence};
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

/// Refuses a layer whose public fields are not what its settings say: one that is missing, one too many, or one of
/// another shape.
#[cfg(feature = "dfdx")]
fn check_fields<E: bochner_nn::Element>(
    layer: &dyn bochner_nn::Parameters<E>,
    expected: &[ParameterSpec],
) -> Result<(), Error> {
    const BY: &str = "the layer's configuration";
    let mut given = Vec::new();
    layer.for_each("", &mut |name, parameter| {
        given.push((name.to_owned(), parameter.dims()))
    });
    for spec in expected {
        let field = given.iter().find(|(name, _)| *name == spec.name);
        expect_presence(spec.name.clone(), true, field.is_some(), BY)?;
        if let Some((name, dims)) = field {
            argument::shape(name.clone(), &spec.shape, dims)?;
        }
    }
    for (name, _) in given {
        let needed = expected.iter().any(|spec| spec.name == name);
        expect_presence(name, needed, true, BY)?;
    }
    Ok(())
}

/// The dropout of a pass, or `None` where nothing is dropped.
fn mask(rate: f64, mode: Mode) -> Option<DropoutMask> {
    dropout_mask(rate, mode).expect("a rate that its layer has checked")
}
