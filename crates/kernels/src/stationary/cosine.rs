//! Oscillations made of the phases of the dimensions.

use serde::{Deserialize, Serialize};

/// The oscillation of a component of a [`SpectralMixture`](super::SpectralMixture), $C$ as a
/// function of the phases $\vartheta_n = 2 \pi t_n \mu_n$.
///
/// The two forms agree for inputs of one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cosine {
    /// $C = \cos \sum_n \vartheta_n$, the Fourier transform of a mixture of Gaussians at
    /// $\pm 2 \pi \mu$: the form as corrected by its first author.
    #[default]
    Joint,
    /// $C = \prod_n \cos \vartheta_n$, as first printed: a mixture over all signs of the
    /// coordinates of $2 \pi \mu$, independently.
    Product,
}

impl Cosine {
    /// The number of cosines that are multiplied for inputs of `width` numbers.
    pub(super) fn factors(self, width: usize) -> usize {
        match self {
            Self::Joint => 1,
            Self::Product => width,
        }
    }

    /// The factor in which a dimension oscillates.
    pub(super) fn factor(self, dimension: usize) -> usize {
        match self {
            Self::Joint => 0,
            Self::Product => dimension,
        }
    }
}
