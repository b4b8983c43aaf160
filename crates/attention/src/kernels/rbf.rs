//! The RBF kernel.

use bochner_engine::{Kind, Number, Pair, Raw, Score};

/// $x_{ij} = -|q_i - k_j|^2 / (2 \sqrt d)$.
#[derive(Clone, Debug)]
pub(super) struct Rbf;

impl Score for Rbf {
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
