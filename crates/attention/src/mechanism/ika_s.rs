//! IKA-S: an implicit stationary kernel with the Euclidean norm.

use super::{Mikan, squared};
use crate::Card;
use bochner_spectral::{Copula, Stationarity};

/// The card of these settings.
pub(super) const CARD: Card = Card {
    name: "ika-s",
    title: "a squared stationary kernel with an implicit spectral density",
    equation: Some("equations 12-13"),
    ..squared::CARD
};

impl Mikan {
    /// IKA-S: $(f_S(q, k)^2 + e) e^{m}$ with p = 2, and no copula.
    ///
    /// # Reference
    /// Song et al. 2021, equations 12 and 13.
    pub fn ika_s() -> Self {
        Self {
            stationarity: Stationarity::Stationary,
            copula: Copula::Independent,
            ..Self::default()
        }
    }
}
