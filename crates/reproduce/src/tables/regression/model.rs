//! The models of the table, and how each is set up on a set.

use crate::settings::{AttentionSettings, Covariance, ProcessSettings};
use crate::{Preset, Settings};
use bochner_attention::{DirectInit, IkanDirect, Mikan, Softmax, Variant};
use bochner_datasets::RegressionSet;

/// A model of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Model {
    /// A Gaussian process with one lengthscale for all inputs.
    GpRbf,
    /// A Gaussian process with a spectral mixture of five components.
    GpSm,
    /// Softmax attention with the heads of the released code: 8 on CO2, 4 elsewhere.
    Transformer,
    /// Softmax attention with 8 heads, as many as the others have.
    TransformerEightHeads,
    /// Kernel attention whose spectral points are parameters.
    IkanDirect,
    /// Kernel attention whose spectral points are drawn jointly over the heads.
    Mikan,
}

/// The sizes that differ between the scales.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) splits: usize,
    pub(super) points: usize,
    pub(super) epochs: usize,
    pub(super) every: usize,
}

impl Model {
    /// All models, in the order of the tables; but for the Transformer's second number of heads.
    pub const ALL: [Self; 5] = [
        Self::GpRbf,
        Self::GpSm,
        Self::Transformer,
        Self::IkanDirect,
        Self::Mikan,
    ];

    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GpRbf => "GP (RBF)",
            Self::GpSm => "GP (SM)",
            Self::Transformer => "Transformer",
            Self::TransformerEightHeads => "Transformer (8 heads)",
            Self::IkanDirect => "IKAN-direct",
            Self::Mikan => "MIKAN",
        }
    }

    /// Whether it is a Gaussian process: trained on the training rows alone, without attention.
    pub const fn is_process(self) -> bool {
        matches!(self, Self::GpRbf | Self::GpSm)
    }

    /// Whether the released code has a reading of it that is not the paper's. These are the models
    /// that the paper's table claims an improvement for, and the ones that are judged.
    pub const fn is_judged(self) -> bool {
        matches!(self, Self::IkanDirect | Self::Mikan)
    }

    /// The model that lacks one thing that this one has: their difference is what that brings.
    pub const fn simpler(self) -> Option<Self> {
        match self {
            Self::GpSm => Some(Self::GpRbf),
            _ => None,
        }
    }

    const fn covariance(self) -> Option<Covariance> {
        match self {
            Self::GpRbf => Some(Covariance::Rbf),
            Self::GpSm => Some(Covariance::SpectralMixture { components: 5 }),
            _ => None,
        }
    }

    /// Heads of the attention layer.
    pub(super) const fn heads(self, set: RegressionSet) -> usize {
        match (self, set) {
            (Self::Transformer, RegressionSet::Co2) => 8,
            (Self::Transformer, _) => 4,
            _ => 8,
        }
    }

    /// The norm p: where the released code has the model, that of the released code.
    pub(super) fn p(self, set: RegressionSet) -> Option<f64> {
        use RegressionSet::{Co2, Concrete, Housing, Parkinsons, Passenger};
        match (self, set) {
            (Self::IkanDirect, Passenger | Concrete) => Some(2.0),
            (Self::IkanDirect, _) => Some(3.0),
            (Self::Mikan, Co2 | Passenger) => Some(3.0),
            (Self::Mikan, Housing | Concrete) => Some(1.8),
            (Self::Mikan, Parkinsons) => Some(2.0),
            _ => None,
        }
    }

    /// The settings of a unit; `p` where it has a norm to choose.
    pub(super) fn settings(
        self,
        set: RegressionSet,
        size: Size,
        preset: Preset,
        p: Option<f64>,
    ) -> Settings {
        let Size { epochs, every, .. } = size;
        if let Some(covariance) = self.covariance() {
            return Settings::Process(ProcessSettings {
                covariance,
                epochs,
                learning_rate: 0.01,
                every,
            });
        }
        let points = p.is_some().then_some(size.points);
        Settings::Attention(AttentionSettings {
            attention: self.attention(p, size.points, preset),
            p,
            points,
            heads: self.heads(set),
            width: 64,
            hidden: 64,
            epochs,
            learning_rate: 0.01,
            clip_norm: 1000.0,
            every,
        })
    }

    /// The attention mechanism; everything not given is the mechanism's own default.
    fn attention(self, p: Option<f64>, points: usize, preset: Preset) -> Variant {
        let followed = match preset {
            Preset::Paper => bochner_attention::Preset::Paper,
            Preset::Released => bochner_attention::Preset::Released,
        };
        match (self, p) {
            (Self::IkanDirect, Some(p)) => IkanDirect {
                p,
                points,
                preset: followed,
                start: match preset {
                    Preset::Paper => DirectInit::NearSoftmax,
                    Preset::Released => DirectInit::KaimingUniform,
                },
                ..IkanDirect::default()
            }
            .into(),
            (Self::Mikan, Some(p)) => Mikan {
                p,
                points,
                preset: followed,
                ..Mikan::default()
            }
            .into(),
            _ => Softmax {}.into(),
        }
    }
}
