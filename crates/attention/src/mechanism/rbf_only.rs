//! The RBF kernel alone: softmax attention without its magnitude.

use super::{COST_OF_PAIRS, Mechanism, Pass, Streams};
use crate::{Card, Error, Settings, kernels};
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
#[serde(deny_unknown_fields, remote = "Self")]
pub struct RbfOnly {}

impl<T: Real> Mechanism<T> for RbfOnly {
    fn card(&self) -> Card {
        Card {
            name: "rbf-only",
            title: "an RBF similarity without a magnitude",
            paper: "Tsai et al. 2019",
            cost: COST_OF_PAIRS,
            ..Card::SCORE
        }
    }

    fn kernel(&self, inputs: &Streams<T>, _: &[T], _: &Pass) -> Result<Settings<T>, Error> {
        Ok(kernels::rbf(inputs.mask))
    }
}

#[cfg(feature = "conformance")]
mod conformance {
    use super::*;
    use crate::conformance::*;

    impl Conformance for RbfOnly {
        fn examples() -> Vec<Self> {
            vec![Self::default()]
        }

        fn reference(
            &self,
            inputs: &Streams<f64>,
            _: &[f64],
            pass: &Pass,
        ) -> Result<Reference, Error> {
            Reference::by_weight(inputs, pass, |pair| {
                (-pair.square_distance() / (2.0 * pair.root())).exp()
            })
        }
    }
}
