//! The linear kernel, squared.

use super::{COST_OF_PAIRS, Mechanism, Pass, Streams};
use crate::{Card, Error, Magnitude, Settings, kernels};
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
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Linear {}

impl<T: Real> Mechanism<T> for Linear {
    fn card(&self) -> Card {
        Card {
            name: "linear",
            title: "a squared linear similarity times the magnitude of the key",
            paper: "Song et al. 2021",
            cost: COST_OF_PAIRS,
            ..Card::SCORE
        }
    }

    fn kernel(&self, inputs: &Streams<T>, _: &[T], _: &Pass) -> Result<Settings<T>, Error> {
        Ok(kernels::linear(inputs.mask).with_key_weight(Magnitude::Norm { p: 2.0 }))
    }
}
