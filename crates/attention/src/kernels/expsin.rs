//! A kernel that repeats itself with the distance.

use crate::error::period;
use bochner_engine::{Kind, Number, Pair, Raw, Score, Scored, Shape};
use bochner_numerics::Real;
use std::f64::consts::PI;

/// $x_{ij} = -2 \sin^2(\pi |q_i - k_j| / P) / \sqrt d$.
#[derive(Clone, Debug)]
pub(super) struct Expsin {
    /// The period P.
    pub(super) period: f64,
}

impl Expsin {
    pub(super) fn kernel<T: Real>(self) -> Scored<Self, T> {
        Scored::new(self)
    }
}

/// The least squared distance that is told from none: the slope of a root has no limit at zero, where the gradient of
/// the distance is zero.
const LEAST: f64 = 1e-30;

impl Score for Expsin {
    const RAW: Raw = Raw::SquaredDistance;

    fn kind(&self) -> Kind {
        Kind::Logit
    }

    fn uses_positions(&self) -> bool {
        false
    }

    fn check(&self, _: &Shape) -> Result<(), bochner_engine::Error> {
        Ok(period(self.period)?)
    }

    #[inline(always)]
    fn score<N: Number>(&self, raw: N, pair: Pair<N>, _: &[N]) -> N {
        let angle = raw.max(N::of(LEAST)).sqrt() * N::of(PI / self.period);
        let sin = angle.sin();
        sin * sin * N::of(-2.0 / (pair.width as f64).sqrt())
    }
}
