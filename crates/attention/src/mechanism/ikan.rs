//! IKAN: an implicit kernel with any norm.

use super::Mikan;
use crate::mechanism::Entry;
use bochner_spectral::Copula;

pub(crate) const IKAN: Entry = Entry {
    name: "ikan",
    summary: "a squared kernel with an implicit spectral density and any p-norm",
    reference: "Song et al. 2021",
    default: || Mikan::ikan().into(),
};

impl Mikan {
    /// IKAN: $(f_{NS}(q, k)^2 + e)\, e^{m}$ with any p, and no copula; at p = 2 it is
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
