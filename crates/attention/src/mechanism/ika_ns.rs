//! IKA-NS: an implicit non-stationary kernel with the Euclidean norm.

use super::Mikan;
use crate::mechanism::Entry;
use bochner_spectral::Copula;

pub(crate) const IKA_NS: Entry = Entry {
    name: "ika-ns",
    summary: "a squared non-stationary kernel with an implicit spectral density",
    reference: "Song et al. 2021, equations 14-16",
    default: || Mikan::ika_ns().into(),
};

impl Mikan {
    /// IKA-NS: $(f_{NS}(q, k)^2 + e)\, e^{m}$ with p = 2, and no copula.
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
