//! The settings of a translator in the tables.

use super::Said;
use crate::mechanisms::{in_decoder, mechanism};
use crate::{Preset, Settings};
use bochner_attention::Variant;
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_models::training::TrainingConfig;
use bochner_models::translator::TranslatorConfig;
use bochner_ops::Schedule;
use bochner_text::Vocabulary;
use serde::{Deserialize, Serialize};

/// The settings of a translator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TranslationSettings {
    /// The attention mechanism of the encoder; a decoder has it in a form that can be causal.
    pub attention: Variant,
    /// The norm of its magnitudes; absent where it has no choice.
    pub p: Option<f64>,
    /// Its spectral points R; absent where it has none.
    pub points: Option<usize>,
    /// Layers of the encoder, and of the decoder.
    pub layers: usize,
    /// Width of the model.
    pub width: usize,
    /// Heads of each attention.
    pub heads: usize,
    /// Width of the feed-forward layers.
    pub hidden: usize,
    /// Merges of the subwords, learnt on both sides of the training part together.
    pub merges: usize,
    /// The share of inner values that is dropped in training.
    pub dropout: f64,
    /// The share of attention weights that is dropped in training.
    pub attention_dropout: f64,
    /// The share of a target's probability that is spread over all tokens in training.
    pub smoothing: f64,
    /// Tokens of a pair's longer side, its mark included, beyond which training leaves it out.
    pub longest: usize,
    /// Positions of the model: sides of validation and test are cut to so many tokens, marks included.
    pub positions: usize,
    /// Target tokens in a batch, padding included.
    pub tokens: usize,
    /// Passes over the training pairs.
    pub epochs: usize,
    /// Adam's largest step size.
    pub learning_rate: f64,
    /// Updates until it is reached; it falls with the inverse square root afterwards.
    pub warmup: u64,
    /// The factor of half the squared norm of the parameters in the objective.
    pub l2: f64,
    /// Largest norm of a gradient.
    pub clip_norm: f64,
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
        let has_pairs = has_pairs && !model.contains("linear time");
        Settings::of(&Self {
            attention,
            p,
            points: p.map(|_| points),
            attention_dropout: if has_pairs {
                self.attention_dropout
            } else {
                0.0
            },
            ..self.clone()
        })
    }

    /// What a choice is made among, in words.
    pub(crate) fn brief(&self) -> String {
        format!("dropout {}, rate {}", self.dropout, self.learning_rate)
    }

    pub(super) fn model(&self, vocabulary: &Vocabulary) -> Result<TranslatorConfig, Said> {
        let layer = EncoderLayerConfig {
            width: self.width,
            heads: self.heads,
            hidden: self.hidden,
            attention: self.attention.clone(),
            dropout: self.dropout,
            norm: NormPlacement::Pre,
        };
        let encoder = EncoderConfig {
            layers: self.layers,
            layer,
        };
        let of_decoder = in_decoder(&self.attention);
        let config =
            TranslatorConfig::transformer(vocabulary, self.positions, encoder, of_decoder)?;
        Ok(TranslatorConfig {
            attention_dropout: Some(self.attention_dropout),
            ..config
        })
    }

    pub(super) fn training(&self) -> TrainingConfig {
        let warmup = self.warmup;
        TrainingConfig {
            learning_rate: self.learning_rate,
            schedule: Schedule::InverseSquareRoot { warmup },
            clip_norm: Some(self.clip_norm),
            l2: self.l2,
            ..TrainingConfig::default()
        }
    }
}
