//! Options of the attention in a model.

use crate::Error;
use bochner_attention::{MultiHeadConfig, Pass, PositionBias, Rotary, Variant};
use bochner_numerics::Seed;
use serde::{Deserialize, Serialize};

/// Options of an attention beside its mechanism and its number of heads: those of a
/// [`MultiHead`](bochner_attention::MultiHead) layer. By default none is used.
///
/// ```
/// use bochner_attention::{Rotary, Softmax};
/// use bochner_models::attention::AttentionOptions;
/// use bochner_models::classifier::TextClassifierConfig;
/// use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig};
/// use bochner_models::positions::Positions;
///
/// let layer = EncoderLayerConfig {
///     width: 32,
///     heads: 4,
///     attention: Softmax::default().into(),
///     attention_options: AttentionOptions {
///         kv_heads: Some(2),
///         rotary: Some(Rotary::default()),
///         ..Default::default()
///     },
///     ..Default::default()
/// };
/// let encoder = EncoderConfig::new(2, layer);
/// let mut config = TextClassifierConfig::transformer(1000, 2, 60, encoder);
/// // Rotary positions tell the order of the words, without a table that ends.
/// config.embedding.positions = Positions::None;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct AttentionOptions {
    /// Number of key-value heads (grouped-query attention). Must divide the number of heads. Defaults to that number.
    #[doc(alias = "num_kv_heads")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv_heads: Option<usize>,
    /// Width of each head's queries and keys. Defaults to the layer's width divided by the heads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_width: Option<usize>,
    /// Width of each head's values. Defaults to the layer's width divided by the heads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_width: Option<usize>,
    /// Sliding-window attention: the largest number of positions before and after its own that a query attends to;
    /// [`usize::MAX`] is no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<[usize; 2]>,
    /// Bias of the logits by the positions of query and key.
    #[serde(skip_serializing_if = "is_default")]
    pub position_bias: PositionBias,
    /// Rotary positions of queries and keys.
    #[doc(alias = "rope")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotary: Option<Rotary>,
}

impl AttentionOptions {
    /// The options that need no positions of queries among those of keys: for attention to a memory.
    #[must_use]
    pub fn without_positions(self) -> Self {
        Self {
            window: None,
            position_bias: PositionBias::None,
            rotary: None,
            ..self
        }
    }

    /// The settings of a layer with these options.
    pub(crate) fn apply(&self, config: MultiHeadConfig) -> MultiHeadConfig {
        MultiHeadConfig {
            kv_heads: self.kv_heads,
            key_width: self.key_width,
            value_width: self.value_width,
            window: self.window,
            position_bias: self.position_bias,
            rotary: self.rotary,
            ..config
        }
    }

    /// Checks the options for a layer of this width and number of heads.
    pub(crate) fn check(&self, [width, heads]: [usize; 2], variant: &Variant) -> Result<(), Error> {
        let config = self.apply(MultiHeadConfig {
            heads,
            variant: variant.clone(),
            ..MultiHeadConfig::default()
        });
        Ok(config.check(width)?)
    }
}

/// Refuses, before the first step of a training does, dropout on weights that a mechanism cannot drop. Mechanisms without
/// weights of pairs take any rate and drop nothing.
pub(crate) fn admit_dropout(variant: &Variant, dropout: f64) -> Result<(), Error> {
    let (card, seed) = (variant.card(), Seed::new(0));
    let pass = Pass::Training { seed, dropout };
    Ok(card.admit_pass(&pass.for_card(&card))?)
}

/// Whether a setting is its default, which is not written.
pub(crate) fn is_default<T: Default + PartialEq>(setting: &T) -> bool {
    *setting == T::default()
}
