//! Softmax attention: an RBF similarity times the magnitude at p = 2 (Proposition 1).

use super::closed::{self, Closed};
#[cfg(feature = "conformance")]
use crate::conformance::Pair;
use crate::{Card, Mask, Settings};
use bochner_numerics::Real;
use serde::{Deserialize, Serialize};

/// Softmax attention; it has neither settings nor parameters.
///
/// $$\alpha_{ij} \propto \exp(q_i \cdot k_j / \sqrt d)$$
///
/// # Reference
/// Vaswani et al. 2017; as a kernel, Song et al. 2021, equation 8.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Softmax {}

impl Closed for Softmax {
    const CARD: Card = Card {
        name: "softmax",
        title: "an RBF similarity times the magnitude of the key",
        paper: "Vaswani et al. 2017",
        equation: Some("equation 1"),
        ..closed::CARD
    };

    fn settings<T: Real>(&self, mask: &Mask) -> Settings<T> {
        Settings::softmax(mask)
    }

    #[cfg(feature = "conformance")]
    fn weight(&self, pair: &Pair) -> f64 {
        (pair.q.dot(&pair.k) / pair.root()).exp()
    }
}
