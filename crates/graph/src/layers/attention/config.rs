//! The settings of a layer.

use super::EdgeKernel;
use crate::settings::check_slope;
use crate::{LayerError, Merge};
use bochner_numerics::Seed;
use bochner_numerics::argument::{at_least_one, in_range, rate};
use bochner_ops::Activation;
use bochner_spectral::{Posterior, Size};
use serde::{Deserialize, Serialize};

/// The score of the edges of a graph attention layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum AttentionKind {
    /// The score of GAT, [`Score::Classic`](crate::Score::Classic).
    Classic,
    /// The score of GATv2, [`Score::Dynamic`](crate::Score::Dynamic).
    Dynamic,
    /// The kernel form.
    Kernel(EdgeKernel),
}

/// A vector that is added to the rows of a matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bias {
    /// A vector that is learned, zero at first.
    #[default]
    Learned,
    /// No vector is added.
    None,
}

/// The use of the targets' features besides attention.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Residual {
    /// The features are not used otherwise.
    #[default]
    None,
    /// The features are added to the output, after a learned map if the output has another width.
    Added,
}

/// The map whose sizes bound the uniform initial values of the weights, after Glorot and Bengio (2010):
/// $\pm \sqrt{6 / (n + m)}$ for a map from $n$ to $m$ numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InitialMap {
    /// Each head's map by itself, to F numbers, and for the vectors of the score F to 1: as in the code that was published
    /// with GAT.
    #[default]
    EachHead,
    /// The map of all heads together, to H F numbers, and for the vectors of the score F to H: as in PyTorch Geometric,
    /// whose values are smaller. Its GAT classifies better than that of each head on dense features.
    AllHeads,
}

/// Settings of a graph attention layer.
///
/// ```
/// use bochner_graph::{GraphAttentionConfig, Merge};
/// use bochner_ops::Activation;
///
/// // The first layer of GAT on Cora, and the second.
/// let first = GraphAttentionConfig {
///     activation: Activation::Elu,
///     input_dropout: 0.6,
///     coefficient_dropout: 0.6,
///     value_dropout: 0.6,
///     ..GraphAttentionConfig::gat(1433, 8, 8)
/// };
/// let second = GraphAttentionConfig {
///     inputs: first.outputs(),
///     heads: 1,
///     width: 7,
///     merge: Merge::Average,
///     activation: Activation::Identity,
///     ..first.clone()
/// };
/// assert_eq!((second.inputs, second.outputs()), (64, 7));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", remote = "Self")]
pub struct GraphAttentionConfig {
    /// The number of columns of the targets' features.
    pub inputs: usize,
    /// The number of columns of the sources' features, where these have a weight of their own; without, one weight
    /// serves both.
    #[serde(default)]
    #[serde(alias = "source_inputs")]
    pub source_inputs: Option<usize>,
    /// The number of columns of the edges' attributes; 0 for none.
    #[serde(default)]
    #[serde(alias = "edge_inputs")]
    pub edge_inputs: usize,
    /// The number of heads H.
    pub heads: usize,
    /// The width F of one head.
    pub width: usize,
    /// The way in which the heads are put together.
    #[serde(default)]
    pub merge: Merge,
    /// The score of the edges.
    pub kind: AttentionKind,
    /// The slope of the LeakyReLU below zero, from 0 to 1.
    #[serde(default = "usual_slope")]
    pub slope: f64,
    /// The vector that is added to the transformed features; one each for targets and sources where these have a
    /// weight of their own. Scores and values have it. Defaults to none.
    #[serde(default = "no_bias")]
    #[serde(alias = "weight_bias")]
    pub weight_bias: Bias,
    /// The rate of the dropout on the features that come in, at least 0 and below 1.
    #[serde(default)]
    #[serde(alias = "input_dropout")]
    pub input_dropout: f64,
    /// The rate of the dropout on the transformed features that targets receive; scores see them undropped,
    /// as in the code that was published with GAT.
    #[serde(default)]
    #[serde(alias = "value_dropout")]
    pub value_dropout: f64,
    /// The rate of the dropout on the normalised weights.
    #[serde(default)]
    #[serde(alias = "coefficient_dropout")]
    pub coefficient_dropout: f64,
    /// The vector that is added to the output.
    #[serde(default)]
    pub bias: Bias,
    /// The use of the targets' features besides attention.
    #[serde(default)]
    pub residual: Residual,
    /// The function that the output goes through last.
    #[serde(default)]
    pub activation: Activation,
    /// The map whose sizes bound the initial values.
    #[serde(default, skip_serializing_if = "is_default")]
    pub initial_map: InitialMap,
    /// Seed of the spectral points that are drawn in evaluation: one fixed draw.
    #[serde(default = "usual_seed")]
    pub seed: Seed,
}

bochner_numerics::checked_when_read!(GraphAttentionConfig);

fn is_default(map: &InitialMap) -> bool {
    *map == InitialMap::default()
}

fn usual_slope() -> f64 {
    0.2
}

fn no_bias() -> Bias {
    Bias::None
}

fn usual_seed() -> Seed {
    Seed::new(0)
}

impl GraphAttentionConfig {
    fn new(inputs: usize, heads: usize, width: usize, kind: AttentionKind) -> Self {
        Self {
            inputs,
            source_inputs: None,
            edge_inputs: 0,
            heads,
            width,
            merge: Merge::Concatenate,
            kind,
            slope: usual_slope(),
            weight_bias: Bias::None,
            input_dropout: 0.0,
            value_dropout: 0.0,
            coefficient_dropout: 0.0,
            bias: Bias::Learned,
            residual: Residual::None,
            activation: Activation::Identity,
            initial_map: InitialMap::EachHead,
            seed: usual_seed(),
        }
    }

    /// A layer of GAT (Veličković et al. 2018), its heads side by side, without dropout.
    pub fn gat(inputs: usize, heads: usize, width: usize) -> Self {
        Self::new(inputs, heads, width, AttentionKind::Classic)
    }

    /// A layer of GATv2 (Brody et al. 2022): targets and sources have a weight and a bias each, as in the code that
    /// was published with it, which is that of PyTorch Geometric.
    pub fn gatv2(inputs: usize, heads: usize, width: usize) -> Self {
        Self {
            source_inputs: Some(inputs),
            weight_bias: Bias::Learned,
            ..Self::new(inputs, heads, width, AttentionKind::Dynamic)
        }
    }

    /// A layer of the kernel form.
    pub fn kernel(
        inputs: usize,
        heads: usize,
        width: usize,
        kernel: impl Into<EdgeKernel>,
    ) -> Self {
        let kind = AttentionKind::Kernel(kernel.into());
        Self::new(inputs, heads, width, kind)
    }

    /// The number of columns of the output.
    pub fn outputs(&self) -> usize {
        match self.merge {
            Merge::Concatenate => self.columns(),
            Merge::Average => self.width,
        }
    }

    /// Whether the layer infers its spectral points from the means over all nodes it is given: each output
    /// then depends on all of them, also in a [`Batch`](crate::Batch) or a
    /// [`Neighbourhood`](crate::Neighbourhood). Only an implicit source with an inferred posterior does so.
    ///
    /// ```
    /// use bochner_graph::GraphAttentionConfig;
    /// use bochner_spectral::{Copula, Direct, Implicit, Posterior};
    ///
    /// assert!(GraphAttentionConfig::kernel(4, 2, 8, Implicit::default()).infers_points());
    /// let (copula, posterior) = (Copula::Free, Posterior::Unconditional);
    /// let alone = Implicit { copula, posterior, ..Implicit::default() };
    /// assert!(!GraphAttentionConfig::kernel(4, 2, 8, alone).infers_points());
    /// assert!(!GraphAttentionConfig::kernel(4, 2, 8, Direct::default()).infers_points());
    /// assert!(!GraphAttentionConfig::gat(4, 2, 8).infers_points());
    /// ```
    pub fn infers_points(&self) -> bool {
        matches!(
            self.kind,
            AttentionKind::Kernel(EdgeKernel::Implicit { source, .. })
                if source.posterior == Posterior::Inferred
        )
    }

    /// The number of columns of all heads.
    pub(super) fn columns(&self) -> usize {
        self.heads * self.width
    }

    /// The number of columns of `a`.
    pub(super) fn score_width(&self) -> usize {
        match self.kind {
            AttentionKind::Dynamic => self.width,
            _ => 2 * self.width,
        }
    }

    /// Whether the transformed attributes of the edges are reduced to a number.
    pub(super) fn has_edge_a(&self) -> bool {
        self.edge_inputs > 0 && self.kind != AttentionKind::Dynamic
    }

    /// The sizes that a source's parameters depend on: its points lie in $\mathbb{R}^{2F}$.
    pub(super) fn size(&self) -> Size {
        Size {
            heads: self.heads,
            width: 2 * self.width,
        }
    }

    /// Whether the residual needs a map.
    pub(super) fn projects(&self) -> bool {
        self.residual == Residual::Added && self.inputs != self.outputs()
    }

    pub(super) fn validate(&self) -> Result<(), LayerError> {
        at_least_one("inputs", self.inputs)?;
        at_least_one("source_inputs", self.source_inputs.unwrap_or(1))?;
        at_least_one("heads", self.heads)?;
        at_least_one("width", self.width)?;
        let widest = [
            self.inputs,
            self.source_inputs.unwrap_or(0),
            self.edge_inputs,
            2,
        ];
        let sizes = [self.heads, self.width, *widest.iter().max().expect("four")];
        let elements = sizes.into_iter().try_fold(1_usize, usize::checked_mul);
        in_range(
            elements.is_some_and(|n| n <= isize::MAX as usize / size_of::<f64>()),
            "elements of the largest weight",
            sizes.map(|n| n as f64).into_iter().product::<f64>(),
            "so few that they can be addressed",
        )?;
        check_slope(self.slope)?;
        rate("input_dropout", self.input_dropout)?;
        rate("value_dropout", self.value_dropout)?;
        rate("coefficient_dropout", self.coefficient_dropout)?;
        self.activation.validate()?;
        match &self.kind {
            AttentionKind::Kernel(kernel) => kernel.validate(),
            AttentionKind::Classic | AttentionKind::Dynamic => Ok(()),
        }
    }
}
