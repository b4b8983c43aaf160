//! What fixes a training run besides data and seed.

use bochner_attention::Variant;
use bochner_models::node_classifier::Architecture;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// What fixes a training run besides data and seed.
///
/// Stored without a tag: the kinds differ in the name of their first field, and results recorded
/// when there were fewer of them are read as what they were.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Settings {
    /// Of a regressor with an attention layer.
    Attention(AttentionSettings),
    /// Of a Gaussian process.
    Process(ProcessSettings),
    /// Of a node classifier.
    Nodes(NodeSettings),
}

/// The settings of a regressor with an attention layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttentionSettings {
    /// The attention mechanism with all its settings.
    pub attention: Variant,
    /// The norm of its magnitudes; absent where it has no choice.
    pub p: Option<f64>,
    /// Its spectral points R; absent where it has none.
    pub points: Option<usize>,
    /// Heads of the attention layer.
    pub heads: usize,
    /// Width of the model.
    pub width: usize,
    /// Width of the feed-forward layer.
    pub hidden: usize,
    /// Passes over the training rows.
    pub epochs: usize,
    /// Adam's step size.
    pub learning_rate: f64,
    /// Largest norm of a gradient.
    pub clip_norm: f64,
    /// Every how many rows of the data set are used; one for all.
    pub every: usize,
}

/// The settings of a Gaussian process with a constant mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessSettings {
    /// Its covariance function.
    pub covariance: Covariance,
    /// Steps up the evidence of the training rows.
    pub epochs: usize,
    /// Adam's step size.
    pub learning_rate: f64,
    /// Every how many rows of the data set are used; one for all.
    pub every: usize,
}

/// The covariance function of a Gaussian process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kernel", rename_all = "kebab-case")]
pub enum Covariance {
    /// A multiple of a Gaussian with one lengthscale.
    Rbf,
    /// A spectral mixture, with frequencies and widths of its own in every dimension.
    SpectralMixture {
        /// The terms of the mixture.
        components: usize,
    },
}

/// The settings of a node classifier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeSettings {
    /// What its two layers are, with all their settings.
    pub architecture: Architecture,
    /// The norm of its magnitudes; absent where it has no choice.
    pub p: Option<f64>,
    /// Its spectral points R; absent where it has none.
    pub points: Option<usize>,
    /// The share of inputs, and with attention of transformed features and weights, that is dropped in
    /// training.
    pub dropout: f64,
    /// The factor of half the squared norm of the parameters in the objective.
    pub l2: f64,
    /// Passes over the graph, at most.
    pub epochs: usize,
    /// The passes in a row without progress on the validation part after which training ends.
    pub patience: NonZeroUsize,
    /// Adam's step size.
    pub learning_rate: f64,
}

impl Settings {
    /// Passes over the training data; where training can end before, the most there can be.
    pub fn epochs(&self) -> usize {
        match self {
            Self::Attention(settings) => settings.epochs,
            Self::Process(settings) => settings.epochs,
            Self::Nodes(settings) => settings.epochs,
        }
    }

    /// The same with another number of epochs.
    pub fn with_epochs(self, epochs: usize) -> Self {
        match self {
            Self::Attention(settings) => Self::Attention(AttentionSettings { epochs, ..settings }),
            Self::Process(settings) => Self::Process(ProcessSettings { epochs, ..settings }),
            Self::Nodes(settings) => Self::Nodes(NodeSettings { epochs, ..settings }),
        }
    }

    /// Every how many rows of the data set are used; one for all.
    pub fn every(&self) -> usize {
        match self {
            Self::Attention(settings) => settings.every,
            Self::Process(settings) => settings.every,
            Self::Nodes(_) => 1,
        }
    }

    /// The norm of the attention's magnitudes; absent where there is no choice.
    pub fn p(&self) -> Option<f64> {
        match self {
            Self::Attention(settings) => settings.p,
            Self::Process(_) => None,
            Self::Nodes(settings) => settings.p,
        }
    }

    /// The spectral points R; absent where there are none.
    pub fn points(&self) -> Option<usize> {
        match self {
            Self::Attention(settings) => settings.points,
            Self::Process(_) => None,
            Self::Nodes(settings) => settings.points,
        }
    }

    /// Those of a regressor with an attention layer.
    pub fn attention(&self) -> Option<&AttentionSettings> {
        match self {
            Self::Attention(settings) => Some(settings),
            Self::Process(_) | Self::Nodes(_) => None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use bochner_attention::Softmax;
    use bochner_graph::AttentionKind;
    use bochner_spectral::Implicit;

    pub(crate) fn attention() -> AttentionSettings {
        AttentionSettings {
            attention: Softmax {}.into(),
            p: Some(2.0),
            points: None,
            heads: 8,
            width: 64,
            hidden: 64,
            epochs: 60,
            learning_rate: 0.01,
            clip_norm: 1000.0,
            every: 1,
        }
    }

    pub(crate) fn process() -> ProcessSettings {
        ProcessSettings {
            covariance: Covariance::SpectralMixture { components: 5 },
            epochs: 60,
            learning_rate: 0.01,
            every: 1,
        }
    }

    pub(crate) fn nodes() -> NodeSettings {
        NodeSettings {
            architecture: Architecture::attention(AttentionKind::Kernel(
                Implicit::default().into(),
            )),
            p: Some(2.0),
            points: Some(64),
            dropout: 0.6,
            l2: 5e-4,
            epochs: 1000,
            patience: NonZeroUsize::new(100).unwrap(),
            learning_rate: 0.005,
        }
    }

    #[test]
    fn every_kind_is_read_back_as_what_it_was() {
        let rbf = ProcessSettings {
            covariance: Covariance::Rbf,
            ..process()
        };
        let classic = NodeSettings {
            architecture: Architecture::attention(AttentionKind::Classic),
            p: None,
            points: None,
            ..nodes()
        };
        let convolution = NodeSettings {
            architecture: Architecture::Convolution { hidden: 16 },
            ..classic.clone()
        };
        for (settings, first) in [
            (Settings::Attention(attention()), "attention"),
            (Settings::Process(process()), "covariance"),
            (Settings::Process(rbf), "covariance"),
            (Settings::Nodes(nodes()), "architecture"),
            (Settings::Nodes(classic), "architecture"),
            (Settings::Nodes(convolution), "architecture"),
        ] {
            let text = serde_json::to_string(&settings).unwrap();
            assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), settings);
            assert!(text.starts_with(&format!("{{\"{first}\":")), "{text}");
            assert_eq!(settings.clone().with_epochs(7).epochs(), 7);
        }
    }

    #[test]
    fn what_a_node_classifier_is_set_to_can_be_asked_for() {
        let settings = Settings::Nodes(nodes());
        assert_eq!((settings.p(), settings.points()), (Some(2.0), Some(64)));
        assert_eq!((settings.epochs(), settings.every()), (1000, 1));
        assert!(settings.attention().is_none());
    }
}
