//! The settings of a translator in the tables.

use super::Said;
use crate::mechanisms::{in_decoder, mechanism};
use bochner_attention::Variant;
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_models::training::TrainingConfig;
use bochner_models::translator::{Pair, TranslatorConfig};
use bochner_ops::Schedule;
use bochner_report::{Preset, Settings};
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
    /// How many times as long as the other a side of a pair may be, marks not counted: training leaves out what is beyond
    /// it; no bound unless it is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length_ratio: Option<f64>,
    /// Positions of the model: sides of validation and test are cut to so many tokens, marks included.
    pub positions: usize,
    /// Target tokens in a batch, padding included.
    pub tokens: usize,
    /// Passes over the training pairs.
    pub epochs: usize,
    /// Adam's largest step size.
    pub learning_rate: f64,
    /// The decay rates of Adam's two moments; 0.9 and 0.999 unless they are said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub betas: Option<[f64; 2]>,
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
            ..Default::default()
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

    /// Whether training reads a pair.
    pub(super) fn admits(&self, Pair { source, target }: &Pair) -> bool {
        let (short, long) = match source.len() <= target.len() {
            true => (source.len(), target.len()),
            false => (target.len(), source.len()),
        };
        let within = |ratio: f64| long as f64 <= ratio * short as f64;
        source.len().max(target.len() + 1) <= self.longest && self.length_ratio.is_none_or(within)
    }

    pub(super) fn training(&self) -> TrainingConfig {
        let (warmup, usual) = (self.warmup, TrainingConfig::default());
        TrainingConfig {
            betas: self.betas.unwrap_or(usual.betas),
            learning_rate: self.learning_rate,
            schedule: Schedule::InverseSquareRoot { warmup },
            clip_norm: Some(self.clip_norm),
            l2: self.l2,
            ..usual
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_attention::Softmax;

    fn settings(length_ratio: Option<f64>, betas: Option<[f64; 2]>) -> TranslationSettings {
        TranslationSettings {
            attention: Softmax::default().into(),
            p: None,
            points: None,
            layers: 1,
            width: 8,
            heads: 2,
            hidden: 8,
            merges: 1,
            dropout: 0.0,
            attention_dropout: 0.0,
            smoothing: 0.0,
            longest: 7,
            length_ratio,
            positions: 9,
            tokens: 60,
            epochs: 1,
            learning_rate: 1e-3,
            betas,
            warmup: 1,
            l2: 0.0,
            clip_norm: 1.0,
            beam: 1,
        }
    }

    #[test]
    fn pairs_beyond_a_length_or_a_ratio_of_lengths_are_left_out() {
        let pair = |source, target| Pair {
            source: vec![4; source],
            target: vec![4; target],
        };
        let (any, bound) = (settings(None, None), settings(Some(1.5), None));
        for (source, target, within) in [(3, 2, true), (2, 3, true), (5, 3, false), (3, 5, false)] {
            assert!(any.admits(&pair(source, target)));
            assert_eq!(bound.admits(&pair(source, target)), within);
        }
        // A target has one mark.
        assert!(bound.admits(&pair(7, 6)));
        assert!(!bound.admits(&pair(7, 7)));
    }

    /// Settings of units that are there already are written as they were.
    #[test]
    fn what_is_not_said_is_not_written() {
        let written = serde_json::to_value(settings(None, None)).unwrap();
        assert!(written.get("betas").is_none() && written.get("length_ratio").is_none());
        let said = settings(Some(1.5), Some([0.9, 0.98]));
        let written = serde_json::to_value(&said).unwrap();
        let read: TranslationSettings = serde_json::from_value(written).unwrap();
        assert_eq!(read, said);
        assert_eq!(said.training().betas, [0.9, 0.98]);
        assert_eq!(settings(None, None).training(), {
            let schedule = Schedule::InverseSquareRoot { warmup: 1 };
            TrainingConfig {
                schedule,
                clip_norm: Some(1.0),
                ..TrainingConfig::default()
            }
        });
    }
}
