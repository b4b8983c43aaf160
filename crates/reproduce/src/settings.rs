//! What fixes a training run besides data and seed.

use bochner_attention::Variant;
use serde::{Deserialize, Serialize};

/// What fixes a training run besides data and seed.
///
/// Stored without a tag: the two kinds differ in their fields, and results recorded when there was
/// only the first are read as that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Settings {
    /// Of a regressor with an attention layer.
    Attention(AttentionSettings),
    /// Of a Gaussian process.
    Process(ProcessSettings),
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

impl Settings {
    /// Passes over the training rows.
    pub fn epochs(&self) -> usize {
        match self {
            Self::Attention(settings) => settings.epochs,
            Self::Process(settings) => settings.epochs,
        }
    }

    /// The same with another number of epochs.
    pub fn with_epochs(self, epochs: usize) -> Self {
        match self {
            Self::Attention(settings) => Self::Attention(AttentionSettings { epochs, ..settings }),
            Self::Process(settings) => Self::Process(ProcessSettings { epochs, ..settings }),
        }
    }

    /// Every how many rows of the data set are used; one for all.
    pub fn every(&self) -> usize {
        match self {
            Self::Attention(settings) => settings.every,
            Self::Process(settings) => settings.every,
        }
    }

    /// The norm of the attention's magnitudes; absent where there is no choice.
    pub fn p(&self) -> Option<f64> {
        self.attention()?.p
    }

    /// The spectral points R; absent where there are none.
    pub fn points(&self) -> Option<usize> {
        self.attention()?.points
    }

    /// Those of a regressor with an attention layer.
    pub fn attention(&self) -> Option<&AttentionSettings> {
        match self {
            Self::Attention(settings) => Some(settings),
            Self::Process(_) => None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use bochner_attention::Softmax;

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

    #[test]
    fn either_kind_is_read_back_as_what_it_was() {
        let rbf = ProcessSettings {
            covariance: Covariance::Rbf,
            ..process()
        };
        for settings in [
            Settings::Attention(attention()),
            Settings::Process(process()),
            Settings::Process(rbf),
        ] {
            let text = serde_json::to_string(&settings).unwrap();
            assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), settings);
            assert!(text.starts_with("{\"attention\":") || text.starts_with("{\"covariance\":"));
            assert_eq!(settings.clone().with_epochs(7).epochs(), 7);
        }
    }
}
