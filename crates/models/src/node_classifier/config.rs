//! The settings of a node classifier.

use crate::Error;
use bochner_graph::AttentionKind;
use bochner_numerics::argument;
use serde::{Deserialize, Serialize};

/// The kind and the sizes of the two layers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", remote = "Self")]
pub enum Architecture {
    /// Graph attention, an ELU between the layers.
    Attention {
        /// The kind of attention of both layers.
        kind: AttentionKind,
        /// Heads of the first layer, side by side.
        heads: usize,
        /// Width of each of them.
        width: usize,
        /// Heads of the second layer, averaged.
        output_heads: usize,
    },
    /// Graph convolution, a rectifier between the layers.
    Convolution {
        /// Width of the first layer.
        hidden: usize,
    },
}

bochner_numerics::checked_when_read!(Architecture);

impl Architecture {
    fn validate(&self) -> Result<(), Error> {
        let sizes = match *self {
            Self::Attention {
                heads,
                width,
                output_heads,
                ..
            } => vec![
                ("heads", heads),
                ("width", width),
                ("output_heads", output_heads),
            ],
            Self::Convolution { hidden } => vec![("hidden", hidden)],
        };
        for (name, size) in sizes {
            argument::at_least_one(name, size)?;
        }
        Ok(())
    }

    /// Graph attention in the sizes of GAT on Cora and Citeseer: 8 heads of width 8, and one.
    pub fn attention(kind: AttentionKind) -> Self {
        Self::Attention {
            kind,
            heads: 8,
            width: 8,
            output_heads: 1,
        }
    }
}

/// Settings of a [`NodeClassifier`](super::NodeClassifier).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct NodeClassifierConfig {
    /// Features of a node.
    pub inputs: usize,
    /// Classes.
    pub classes: usize,
    /// The kind and the sizes of the two layers.
    pub architecture: Architecture,
    /// Rate of dropout on the inputs of both layers; of attention also on the transformed features
    /// that nodes receive, and on the weights.
    pub dropout: f64,
}

bochner_numerics::checked_when_read!(NodeClassifierConfig);

impl NodeClassifierConfig {
    pub(super) fn validate(&self) -> Result<(), Error> {
        self.architecture.validate()?;
        argument::at_least_one("inputs", self.inputs)?;
        argument::at_least_one("classes", self.classes)?;
        Ok(argument::rate("dropout", self.dropout)?)
    }
}
