//! Softmax attention: an RBF similarity times the magnitude at p = 2 (Proposition 1).

use super::closed::Closed;
use crate::mechanism::Described;
use crate::{Mask, Settings};
use bochner_numerics::Real;
use serde::{Deserialize, Serialize};

/// Softmax attention; it has neither settings nor parameters.
///
/// $$\alpha_{ij} \propto \exp(q_i \cdot k_j / \sqrt d)$$
///
/// # Reference
/// Vaswani et al. 2017; as a kernel, Song et al. 2021, equation 8.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Softmax {}

impl Described for Softmax {
    const NAME: &'static str = "softmax";
    const SUMMARY: &'static str = "an RBF similarity times exp(|k|^2 / (2 sqrt d))";
    const REFERENCE: &'static str = "Vaswani et al. 2017";
}

impl Closed for Softmax {
    fn settings<T: Real>(&self, mask: &Mask) -> Settings<T> {
        Settings::softmax(mask)
    }
}
