//! The RBF kernel alone: softmax attention without its magnitude.

use super::{COST_OF_PAIRS, Mechanism, Pass, Streams};
use crate::{Card, Error, Settings, kernels};
use bochner_engine::{Kind, Number, Pair, Raw, Score};
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

impl Score for RbfOnly {
    const RAW: Raw = Raw::SquaredDistance;

    fn kind(&self) -> Kind {
        Kind::Logit
    }

    fn uses_positions(&self) -> bool {
        false
    }

    #[inline(always)]
    fn score<N: Number>(&self, raw: N, pair: Pair<N>, _: &[N]) -> N {
        raw * N::of(-0.5 / (pair.width as f64).sqrt())
    }
}

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
