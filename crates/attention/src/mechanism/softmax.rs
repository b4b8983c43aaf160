//! Softmax attention: an RBF similarity times the magnitude at p = 2 (Proposition 1).

use super::{COST_OF_PAIRS, Mechanism, Pass, Streams};
use crate::error::{Error, scale};
use crate::{Card, Settings};
use bochner_engine::DotProduct;
use bochner_numerics::Real;
use serde::{Deserialize, Serialize};

/// Softmax attention; it has no parameters.
///
/// $$\alpha_{ij} \propto \exp(s q_i \cdot k_j)$$
///
/// *where* s is the `scale`, $1 / \sqrt d$ by default.
///
/// # Reference
/// Vaswani et al. 2017; as a kernel, Song et al. 2021, equation 8.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct Softmax {
    /// The factor of inner products, from 1e-30 to 1e30. `None` for $1 / \sqrt d$ with the width d of a head.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
}

impl<T: Real> Mechanism<T> for Softmax {
    fn card(&self) -> Card {
        Card {
            name: "softmax",
            title: "an RBF similarity times the magnitude of the key",
            paper: "Vaswani et al. 2017",
            equation: Some("equation 1"),
            cost: COST_OF_PAIRS,
            ..Card::SCORE
        }
    }

    fn validate(&self) -> Result<(), Error> {
        Ok(self.scale.map_or(Ok(()), scale)?)
    }

    fn kernel(&self, inputs: &Streams<T>, _: &[T], _: &Pass) -> Result<Settings<T>, Error> {
        let scale = self.scale;
        Ok(Settings::pairs(DotProduct { scale }, inputs.mask))
    }
}
