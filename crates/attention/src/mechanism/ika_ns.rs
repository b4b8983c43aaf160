//! IKA-NS: an implicit non-stationary kernel with the Euclidean norm.

use super::{Mikan, squared};
use crate::Card;
use bochner_spectral::Copula;

/// The card of these settings.
pub(super) const CARD: Card = Card {
    name: "ika-ns",
    title: "a squared non-stationary kernel with an implicit spectral density",
    equation: Some("equations 14-16"),
    ..squared::CARD
};

impl Mikan {
    /// IKA-NS: $(f_{NS}(q, k)^2 + e) e^{m}$ with p = 2, and no copula.
    ///
    /// # Reference
    /// Song et al. 2021, equations 14-16.
    pub fn ika_ns() -> Self {
        Self {
            copula: Copula::Independent,
            ..Self::default()
        }
    }
}
