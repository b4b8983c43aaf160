//! Expsin: a similarity that repeats itself with the distance.

use super::{COST_OF_PAIRS, Mechanism, Pass, Streams};
use crate::{Card, Error, Magnitude, Settings, kernels};
use bochner_engine::{Kind, Number, Pair, Raw, Score, Shape};
use bochner_numerics::{ArgumentError, Real, argument};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// A periodic similarity times the magnitude of softmax attention; it has no parameters.
///
/// $$\alpha_{ij} \propto \exp\left(-\frac{2}{\sqrt d} \sin^2 \frac{\pi |q_i - k_j|}{P}\right)
/// \exp\frac{|k_j|^2}{2\sqrt d}$$
///
/// *where* P is the `period`, 1 by default, and the squared lengthscale is $\sqrt d$, as that of
/// softmax attention's own kernel.
///
/// # Numerics
/// A distance that the type cannot tell from a whole number of periods counts as one.
///
/// # Reference
/// Song et al. 2021 compare with it; no formula is published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct Expsin {
    /// The period P of the distance, from 1e-6 to 1e6.
    pub period: f64,
}

impl Default for Expsin {
    fn default() -> Self {
        Self { period: 1.0 }
    }
}

/// The least squared distance that is told from none: the slope of a root has no limit at zero, where the gradient of
/// the distance is zero.
const LEAST: f64 = 1e-30;

impl Expsin {
    fn check_period(&self) -> Result<(), ArgumentError> {
        let holds = (1e-6..=1e6).contains(&self.period);
        argument::in_range(holds, "period", self.period, "from 1e-6 to 1e6")
    }
}

/// The similarity, $x_{ij} = -2 \sin^2(\pi |q_i - k_j| / P) / \sqrt d$.
impl Score for Expsin {
    const RAW: Raw = Raw::SquaredDistance;

    fn kind(&self) -> Kind {
        Kind::Logit
    }

    fn uses_positions(&self) -> bool {
        false
    }

    fn check(&self, _: &Shape) -> Result<(), bochner_engine::Error> {
        Ok(self.check_period()?)
    }

    #[inline(always)]
    fn score<N: Number>(&self, raw: N, pair: Pair<N>, _: &[N]) -> N {
        let angle = raw.max(N::of(LEAST)).sqrt() * N::of(PI / self.period);
        let sin = angle.sin();
        sin * sin * N::of(-2.0 / (pair.width as f64).sqrt())
    }
}

impl<T: Real> Mechanism<T> for Expsin {
    fn card(&self) -> Card {
        Card {
            name: "expsin",
            title: "a periodic similarity times the magnitude of the key",
            paper: "Song et al. 2021",
            cost: COST_OF_PAIRS,
            ..Card::SCORE
        }
    }

    fn validate(&self) -> Result<(), Error> {
        Ok(self.check_period()?)
    }

    fn kernel(&self, inputs: &Streams<T>, _: &[T], _: &Pass) -> Result<Settings<T>, Error> {
        let similarity = kernels::expsin(self.period, inputs.mask);
        Ok(similarity.with_key_weight(Magnitude::Norm { p: 2.0 }))
    }
}
