//! The settings of a training.

use crate::Error;
use crate::attention::is_default;
use bochner_numerics::argument;
use bochner_ops::{AdamConfig, Decayed, Schedule, WeightDecay};
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// Settings of the training of any model: the optimiser (Adam, or AdamW if there is a weight decay), the schedule of its
/// learning rate, penalties, clipping, and the batches of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct TrainingConfig {
    /// Adam's learning rate. Defaults to 0.001, as in PyTorch.
    #[serde(alias = "learning-rate")]
    pub learning_rate: f64,
    /// The decay rates of Adam's two moments; 0.9 and 0.999 by default, as in PyTorch.
    #[serde(skip_serializing_if = "are_usual")]
    pub betas: [f64; 2],
    /// The factor on the learning rate, by step; always 1 by default.
    #[serde(skip_serializing_if = "is_default")]
    pub schedule: Schedule,
    /// The largest norm of a step's gradients, to which larger gradients are scaled down. If `None`, the norm is not
    /// computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(alias = "clip-norm")]
    pub clip_norm: Option<f64>,
    /// The factor $\lambda$ of half the squared norm of the parameters in the objective; 0 by default. The
    /// gradient that is clipped contains it.
    #[serde(skip_serializing_if = "is_default")]
    pub l2: f64,
    /// The factor $\lambda$ of decoupled weight decay (AdamW); 0 by default. A step first shrinks parameters by the learning
    /// rate of its schedule times this factor. Neither the objective nor the gradients contain it.
    #[serde(skip_serializing_if = "is_default")]
    #[serde(alias = "weight-decay")]
    #[doc(alias = "AdamW")]
    pub weight_decay: f64,
    /// The parameters that `weight_decay` shrinks. Defaults to [`Decayed::Weights`]: the weights of linear maps and the
    /// tables of embeddings, but not biases and norms.
    #[serde(skip_serializing_if = "are_weights")]
    pub decayed: Decayed,
    /// The number of batches whose gradients add up to those of a step, one after the other; 1 by default.
    #[serde(skip_serializing_if = "is_one")]
    pub accumulate: NonZeroUsize,
    /// The number of parts into which each batch is cut; threads compute them side by side. A batch of fewer sequences has
    /// fewer parts. Defaults to 1.
    ///
    /// In a small model threads wait for each other in every operation; with parts they wait once a step. A classifier of
    /// width 64 trains 1.1 to 1.25 times as fast on two threads with two parts. Every part holds gradients in memory.
    ///
    /// The number of parts, not that of the threads, decides bits and draws. Without draws, a step equals that of the whole
    /// batch up to rounding. A loss of the whole batch ([`Penalty::PerBatch`](bochner_attention::card::Penalty)), as
    /// Primal-Attention has by default, is the exception: a step takes its mean over the parts. A checkpoint of a run with
    /// another number of parts is refused.
    #[serde(skip_serializing_if = "is_one")]
    pub parts: NonZeroUsize,
}

bochner_numerics::checked_when_read!(TrainingConfig);

fn are_usual(betas: &[f64; 2]) -> bool {
    *betas == AdamConfig::default().betas
}

fn are_weights(decayed: &Decayed) -> bool {
    *decayed == Decayed::Weights
}

fn is_one(count: &NonZeroUsize) -> bool {
    *count == NonZeroUsize::MIN
}

impl Default for TrainingConfig {
    fn default() -> Self {
        Self {
            learning_rate: AdamConfig::default().learning_rate,
            betas: AdamConfig::default().betas,
            schedule: Schedule::Constant,
            clip_norm: None,
            l2: 0.0,
            weight_decay: 0.0,
            decayed: Decayed::Weights,
            accumulate: NonZeroUsize::MIN,
            parts: NonZeroUsize::MIN,
        }
    }
}

impl TrainingConfig {
    /// The settings of the paper's released code for regression: learning rate 0.01, norm at most 1000.
    pub fn regression() -> Self {
        Self {
            learning_rate: 0.01,
            clip_norm: Some(1000.0),
            ..Self::default()
        }
    }

    /// The settings of GAT on Cora and Citeseer: learning rate 0.005, L2 factor 5e-4.
    pub fn nodes() -> Self {
        Self {
            learning_rate: 0.005,
            l2: 5e-4,
            ..Self::default()
        }
    }

    pub(super) fn validate(&self) -> Result<(), Error> {
        self.adam().validate::<f32>()?;
        self.schedule.validate()?;
        argument::non_negative("l2", self.l2)?;
        if let Some(norm) = self.clip_norm {
            argument::in_range(norm > 0.0, "clip_norm", norm, "above 0")?;
        }
        Ok(())
    }

    /// The settings of the optimiser.
    pub(super) fn adam(&self) -> AdamConfig {
        AdamConfig {
            learning_rate: self.learning_rate,
            betas: self.betas,
            weight_decay: WeightDecay::Decoupled(self.weight_decay),
            decayed: self.decayed,
            ..AdamConfig::default()
        }
    }
}
