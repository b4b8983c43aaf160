//! The linear kernel, squared.

use super::closed::{self, Closed};
#[cfg(feature = "conformance")]
use crate::conformance::Pair;
use crate::{Card, Magnitude, Mask, Settings};
use bochner_numerics::Real;
use serde::{Deserialize, Serialize};

/// A squared linear similarity times the magnitude of softmax attention; it has neither settings
/// nor parameters.
///
/// $$\alpha_{ij} \propto \left(\frac{q_i \cdot k_j}{\sqrt d}\right)^2 \exp\frac{|k_j|^2}{2\sqrt d}$$
///
/// # Numerics
/// The weights do not depend on the size of a query. Where a query is orthogonal to all its keys,
/// the weights are those of the magnitudes.
///
/// # Reference
/// Song et al. 2021 compare with it; no formula is published.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Linear {}

impl Closed for Linear {
    const CARD: Card = Card {
        name: "linear",
        title: "a squared linear similarity times the magnitude of the key",
        paper: "Song et al. 2021",
        cost: closed::COST,
        ..closed::CARD
    };

    fn settings<T: Real>(&self, mask: &Mask) -> Settings<T> {
        Settings {
            magnitude: Magnitude::Norm { p: 2.0 },
            ..Settings::linear(mask)
        }
    }

    #[cfg(feature = "conformance")]
    fn weight(&self, pair: &Pair) -> f64 {
        (pair.q.dot(&pair.k) / pair.root()).powi(2) * pair.magnitude(2.0).exp()
    }
}
