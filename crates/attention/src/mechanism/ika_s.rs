//! IKA-S: an implicit stationary kernel with the Euclidean norm.

use super::Mikan;
use crate::mechanism::Entry;
use bochner_spectral::{Copula, Stationarity};

pub(crate) const IKA_S: Entry = Entry {
    name: "ika-s",
    summary: "a squared stationary kernel with an implicit spectral density",
    reference: "Song et al. 2021, equations 12-13",
    default: || Mikan::ika_s().into(),
};

impl Mikan {
    /// IKA-S: $(f_S(q, k)^2 + e)\, e^{m}$ with p = 2, and no copula.
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
