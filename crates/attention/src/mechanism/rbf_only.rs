//! The RBF kernel alone: softmax attention without its magnitude.

use super::closed::Closed;
use crate::mechanism::Described;
use crate::{Mask, Settings};
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
#[serde(deny_unknown_fields)]
pub struct RbfOnly {}

impl Described for RbfOnly {
    const NAME: &'static str = "rbf-only";
    const SUMMARY: &'static str = "an RBF similarity without a magnitude";
    const REFERENCE: &'static str = "Tsai et al. 2019";
}

impl Closed for RbfOnly {
    fn settings<T: Real>(&self, mask: &Mask) -> Settings<T> {
        Settings::rbf(mask)
    }
}
