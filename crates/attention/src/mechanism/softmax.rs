//! Softmax attention: an RBF similarity times the magnitude at p = 2 (Proposition 1).

use super::closed::{self, Closed};
#[cfg(feature = "conformance")]
use crate::conformance::{Pair, power_of_ten};
use crate::error::{Error, scale};
use crate::{Card, Mask, Settings};
use bochner_numerics::Real;
use serde::{Deserialize, Serialize};

/// Softmax attention; it has no parameters.
///
/// $$\alpha_{ij} \propto \exp(s\, q_i \cdot k_j)$$
///
/// *where* s is the `scale`, $1 / \sqrt d$ by default.
///
/// # Reference
/// Vaswani et al. 2017; as a kernel, Song et al. 2021, equation 8.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct Softmax {
    /// What inner products are multiplied with, from 1e-30 to 1e30; `None` for $1 / \sqrt d$ with the width d of a head.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
}

impl Closed for Softmax {
    const CARD: Card = Card {
        name: "softmax",
        title: "an RBF similarity times the magnitude of the key",
        paper: "Vaswani et al. 2017",
        equation: Some("equation 1"),
        cost: closed::COST,
        ..closed::CARD
    };

    fn settings<T: Real>(&self, mask: &Mask) -> Settings<T> {
        match self.scale {
            Some(scale) => Settings::scaled_softmax(scale, mask),
            None => Settings::softmax(mask),
        }
    }

    fn check(&self) -> Result<(), Error> {
        Ok(self.scale.map_or(Ok(()), scale)?)
    }

    #[cfg(feature = "conformance")]
    fn weight(&self, pair: &Pair) -> f64 {
        let scale = self.scale.unwrap_or(pair.root().recip());
        (pair.q.dot(&pair.k) * scale).exp()
    }

    #[cfg(feature = "conformance")]
    fn examples() -> Vec<Self> {
        [None, Some(1.0), Some(0.1)]
            .map(|scale| Self { scale })
            .into()
    }

    #[cfg(feature = "conformance")]
    fn refused() -> Vec<(&'static str, Self)> {
        let refused = [0.0, -1.0, 1e31].map(Some);
        refused.map(|scale| ("scale", Self { scale })).into()
    }

    #[cfg(feature = "conformance")]
    fn extreme(&self, rng: &mut dyn rand::RngCore) -> Self {
        let scale = self.scale.map(|_| power_of_ten(-30.0..30.0, rng));
        Self { scale }
    }
}
