//! The settings of a translator in the tables.

use crate::mechanisms::{in_decoder, mechanism};
use crate::trial::model::AnyError;
use bochner_attention::Preset;
use bochner_models::encoder::EncoderConfig;
use bochner_models::training::TrainingConfig;
use bochner_models::translator::{Pair, TranslatorConfig};
use bochner_report::Settings;
use bochner_text::Vocabulary;
use serde::{Deserialize, Serialize};

/// The settings of a translator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TranslationSettings {
    /// The encoder. The decoder has its sizes, and its attention in a form that can be causal.
    pub encoder: EncoderConfig,
    /// The norm of its attention's magnitudes; absent where it has no choice.
    pub p: Option<f64>,
    /// Its spectral points R; absent where it has none.
    pub points: Option<usize>,
    /// Merges of the subwords, learnt on both sides of the training part together.
    pub merges: usize,
    /// The share of attention weights that is dropped in training.
    pub attention_dropout: f64,
    /// The share of a target's probability that is spread over all tokens in training.
    pub smoothing: f64,
    /// Tokens of a pair's longer side, its mark included, beyond which training leaves it out.
    pub longest: usize,
    /// The largest ratio of the lengths of a pair's sides, without marks: training leaves out pairs beyond it. `None`
    /// is no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length_ratio: Option<f64>,
    /// Positions of the model: sides of validation and test are cut to so many tokens, marks included.
    pub positions: usize,
    /// Target tokens in a batch, padding included.
    pub tokens: usize,
    /// The training.
    pub training: TrainingConfig,
    /// Passes over the training pairs.
    pub epochs: usize,
    /// Hypotheses of the final search.
    pub beam: usize,
}

impl TranslationSettings {
    /// The settings with another model's attention: its norm, and its spectral points if it has a norm.
    pub(crate) fn of_model(&self, model: &str, p: Option<f64>) -> Settings {
        let points = self.points.unwrap_or_default();
        let attention = mechanism(model, Preset::Paper, p, points);
        // A form in linear time has no pairs to drop.
        let has_pairs =
            mechanism("Transformer", Preset::Paper, None, points) == attention || p.is_some();
        let mut own = self.clone();
        if !has_pairs || model.contains("linear time") {
            own.attention_dropout = 0.0;
        }
        own.encoder.layer.attention = attention;
        (own.p, own.points) = (p, p.map(|_| points));
        Settings::of(&own)
    }

    /// The settings among which a choice is made, in words.
    pub(crate) fn brief(&self) -> String {
        let (dropout, rate) = (self.encoder.layer.dropout, self.training.learning_rate);
        format!("dropout {dropout}, rate {rate}")
    }

    pub(super) fn model(&self, vocabulary: &Vocabulary) -> Result<TranslatorConfig, AnyError> {
        let encoder = self.encoder.clone();
        let of_decoder = in_decoder(&encoder.layer.attention);
        let config =
            TranslatorConfig::transformer(vocabulary, self.positions, encoder, of_decoder)?;
        Ok(TranslatorConfig {
            attention_dropout: Some(self.attention_dropout),
            ..config
        })
    }

    /// Whether training reads a pair.
    pub(super) fn admits(&self, Pair { source, target }: &Pair) -> bool {
        let (short, long) = match source.len() <= target.len() {
            true => (source.len(), target.len()),
            false => (target.len(), source.len()),
        };
        let within = |ratio: f64| long as f64 <= ratio * short as f64;
        source.len().max(target.len() + 1) <= self.longest && self.length_ratio.is_none_or(within)
    }
}
