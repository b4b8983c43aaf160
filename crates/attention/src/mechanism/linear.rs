//! The linear kernel, squared.

use super::closed::Closed;
use crate::mechanism::Described;
use crate::{Magnitude, Mask, Settings};
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
#[serde(deny_unknown_fields)]
pub struct Linear {}

impl Described for Linear {
    const NAME: &'static str = "linear";
    const SUMMARY: &'static str = "a squared linear similarity times exp(|k|^2 / (2 sqrt d))";
    const REFERENCE: &'static str = "Song et al. 2021";
}

impl Closed for Linear {
    fn settings<T: Real>(&self, mask: &Mask) -> Settings<T> {
        Settings {
            magnitude: Magnitude::Norm { p: 2.0 },
            ..Settings::linear(mask)
        }
    }
}
