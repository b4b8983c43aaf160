//! A mechanism that no crate of the workspace knows.

use bochner_attention::engine::{Kind, Number, Pair, Raw, Score};
use bochner_attention::{ScoreMechanism, Variant, register};
use serde::{Deserialize, Serialize};

/// $(1 + |q - k|^2 / (2 \alpha \sqrt d))^{-\alpha}$ with a learnt $\ln \alpha$ for each head.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct RationalQuadratic {}

impl Score for RationalQuadratic {
    const RAW: Raw = Raw::SquaredDistance;

    fn kind(&self) -> Kind {
        Kind::Weight
    }

    fn parameters(&self) -> usize {
        1
    }

    fn uses_positions(&self) -> bool {
        false
    }

    #[inline(always)]
    fn score<N: Number>(&self, raw: N, pair: Pair<N>, parameters: &[N]) -> N {
        let (alpha, root) = (parameters[0].exp(), (pair.width as f64).sqrt());
        (N::of(1.0) + raw / (alpha * N::of(2.0 * root))).powf(-alpha)
    }
}

impl ScoreMechanism for RationalQuadratic {
    const NAME: &'static str = "test/rational-quadratic";
}

/// The mechanism, which files may name from here on.
pub(crate) fn rational_quadratic() -> Variant {
    register::<RationalQuadratic>().unwrap();
    RationalQuadratic {}.into()
}
