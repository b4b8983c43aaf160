//! The RBF kernel alone: softmax attention without its magnitude.

use super::closed::{self, Closed};
#[cfg(feature = "conformance")]
use crate::conformance::Pair;
use crate::{Card, Mask, Settings};
use bochner_numerics::Real;
use serde::{Deserialize, Serialize};

/// The similarity of softmax attention without its magnitude; it has neither settings nor
/// parameters.
///
/// $$\alpha_{ij} \propto \exp(-|q_i - k_j|^2 / (2\sqrt d))$$
///
/// # Reference
/// Tsai et al. 2019, as Song et al. 2021 compare with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct RbfOnly {}

impl Closed for RbfOnly {
    const CARD: Card = Card {
        name: "rbf-only",
        title: "an RBF similarity without a magnitude",
        paper: "Tsai et al. 2019",
        cost: closed::COST,
        ..closed::CARD
    };

    fn settings<T: Real>(&self, mask: &Mask) -> Settings<T> {
        Settings::rbf(mask)
    }

    #[cfg(feature = "conformance")]
    fn weight(&self, pair: &Pair) -> f64 {
        (-pair.square_distance() / (2.0 * pair.root())).exp()
    }
}
