//! IKAN: an implicit kernel with any norm.

use super::{Mikan, squared};
use crate::Card;
use bochner_spectral::Copula;

/// The card of these settings.
pub(super) const CARD: Card = Card {
    name: "ikan",
    title: "a squared kernel with an implicit spectral density and any p-norm",

    ..squared::CARD
};

impl Mikan {
    /// IKAN: $(f_{NS}(q, k)^2 + e) e^{m}$ with any p, and no copula; at p = 2 it is
    /// [`Mikan::ika_ns`]. The paper gives no p: 1.5 here, so that the two differ.
    ///
    /// # Reference
    /// Song et al. 2021, section "Implicit kernel attention".
    pub fn ikan() -> Self {
        Self {
            p: 1.5,
            copula: Copula::Independent,
            ..Self::default()
        }
    }
}
