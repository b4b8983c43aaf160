//! The settings of a node classifier.

use crate::Error;
use crate::attention::is_default;
use crate::encoder::MOST_LAYERS;
use bochner_graph::{AttentionKind, InitialMap, Residual};
use bochner_numerics::argument;
use serde::{Deserialize, Serialize};

/// The kind, number and sizes of the layers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", remote = "Self")]
pub enum Architecture {
    /// Graph attention, an ELU between the layers.
    Attention(AttentionLayers),
    /// Graph convolution, a rectifier between the layers.
    Convolution {
        /// Width of the hidden layers; 0 with one layer, which has none before it.
        hidden: usize,
        /// The number of layers, from 1 to 4096. Defaults to 2.
        #[serde(default = "two", skip_serializing_if = "is_two")]
        layers: usize,
    },
}

bochner_numerics::checked_when_read!(Architecture);

/// Layers of graph attention: all but the last have heads side by side, those of the last are averaged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttentionLayers {
    /// The kind of attention of all layers. Those of the dynamic score are
    /// [`gatv2`](bochner_graph::GraphAttentionConfig::gatv2) layers.
    pub kind: AttentionKind,
    /// Heads of each hidden layer; 0 with one layer, which has none before it.
    pub heads: usize,
    /// Width of each of them; 0 with one layer.
    pub width: usize,
    /// Heads of the last layer.
    pub output_heads: usize,
    /// The number of layers, the last one included, from 1 to 4096. Defaults to 2.
    #[serde(default = "two", skip_serializing_if = "is_two")]
    pub layers: usize,
    /// The use of a layer's inputs besides attention, in every layer. Defaults to none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub residual: Residual,
    /// The number of columns of the edges' attributes, which every layer reads. Defaults to 0.
    #[serde(default, skip_serializing_if = "is_default")]
    pub edge_inputs: usize,
    /// The map whose sizes bound the initial values of every layer. Defaults to that of each head.
    #[serde(default, skip_serializing_if = "is_default")]
    pub initial_map: InitialMap,
}

impl AttentionLayers {
    /// The sizes of GAT on Cora and Citeseer: two layers, 8 heads of width 8, and one.
    pub fn new(kind: AttentionKind) -> Self {
        Self {
            kind,
            heads: 8,
            width: 8,
            output_heads: 1,
            layers: two(),
            residual: Residual::None,
            edge_inputs: 0,
            initial_map: InitialMap::EachHead,
        }
    }
}

fn two() -> usize {
    2
}

fn is_two(layers: &usize) -> bool {
    *layers == two()
}

impl Architecture {
    fn validate(&self) -> Result<(), Error> {
        argument::at_most("layers", self.layers(), MOST_LAYERS)?;
        let hidden = match self {
            Self::Attention(own) => {
                argument::at_least_one("output_heads", own.output_heads)?;
                vec![("heads", own.heads), ("width", own.width)]
            }
            &Self::Convolution { hidden, .. } => vec![("hidden", hidden)],
        };
        for (name, size) in hidden {
            if self.layers() > 1 {
                argument::at_least_one(name, size)?;
            } else {
                let allowed = "0 with one layer, before which there is no hidden one";
                argument::in_range(size == 0, name, size as f64, allowed)?;
            }
        }
        Ok(())
    }

    /// Graph attention in the sizes of GAT on Cora and Citeseer.
    pub fn attention(kind: AttentionKind) -> Self {
        Self::Attention(AttentionLayers::new(kind))
    }

    /// Two layers of graph convolution.
    pub fn convolution(hidden: usize) -> Self {
        let layers = two();
        Self::Convolution { hidden, layers }
    }

    /// The number of layers.
    pub fn layers(&self) -> usize {
        match *self {
            Self::Attention(AttentionLayers { layers, .. }) | Self::Convolution { layers, .. } => {
                layers
            }
        }
    }

    /// The number of columns of the edges' attributes.
    pub(crate) fn edge_inputs(&self) -> usize {
        match self {
            Self::Attention(own) => own.edge_inputs,
            Self::Convolution { .. } => 0,
        }
    }
}

/// The rates of dropout of all layers, each at least 0 and below 1.
///
/// ```
/// use bochner_models::node_classifier::Dropout;
///
/// // PyTorch Geometric's layers drop no values; the code that was published with GAT does.
/// let geometric = Dropout { inputs: 0.6, coefficients: 0.6, values: 0.0 };
/// assert_eq!(Dropout::everywhere(0.6), Dropout { values: 0.6, ..geometric });
/// assert_eq!(Dropout::of_inputs(0.6), Dropout { coefficients: 0.0, ..geometric });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dropout {
    /// On the inputs of each layer.
    pub inputs: f64,
    /// On the transformed features that nodes receive, which attention alone has.
    pub values: f64,
    /// On the normalised weights of the edges, the attention coefficients.
    pub coefficients: f64,
}

impl Dropout {
    /// One rate of everything that attention can drop, as in the code that was published with GAT.
    pub fn everywhere(rate: f64) -> Self {
        Self {
            inputs: rate,
            values: rate,
            coefficients: rate,
        }
    }

    /// Dropout on the inputs of each layer alone.
    pub fn of_inputs(rate: f64) -> Self {
        Self {
            inputs: rate,
            ..Self::default()
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
    /// The kind, number and sizes of the layers.
    pub architecture: Architecture,
    /// The rates of dropout. Convolution has dropout on its inputs alone.
    pub dropout: Dropout,
}

bochner_numerics::checked_when_read!(NodeClassifierConfig);

impl NodeClassifierConfig {
    pub(super) fn validate(&self) -> Result<(), Error> {
        self.architecture.validate()?;
        argument::at_least_one("inputs", self.inputs)?;
        argument::at_least_one("classes", self.classes)?;
        let Dropout {
            inputs,
            values,
            coefficients,
        } = self.dropout;
        let attends = matches!(self.architecture, Architecture::Attention(_));
        argument::rate("dropout.inputs", inputs)?;
        for (name, rate) in [
            ("dropout.values", values),
            ("dropout.coefficients", coefficients),
        ] {
            argument::rate(name, rate)?;
            let allowed = "0 with convolution, which has none";
            argument::in_range(attends || rate == 0.0, name, rate, allowed)?;
        }
        Ok(())
    }
}
