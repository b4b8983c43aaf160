//! Rational quadratic similarity with a learnt exponent, trained by a few steps of gradient descent.
//!
//! `cargo run --package bochner-engine --example rational_quadratic`

#![allow(clippy::print_stdout)]

use bochner_engine::ndarray::{Array2, Array4};
use bochner_engine::{
    Error, Kind, Mask, Number, Pair, Raw, Score, Scored, Settings, Wanted, attend, attend_vjp,
};

/// The logit $-\alpha \ln(1 + |q - k|^2 / (2 \alpha))$ with $\alpha = e^\theta$, where $\theta$ is learnt for each head.
#[derive(Clone, Debug)]
pub struct RationalQuadratic;

impl Score for RationalQuadratic {
    const RAW: Raw = Raw::SquaredDistance;

    fn kind(&self) -> Kind {
        Kind::Logit
    }

    fn parameters(&self) -> usize {
        1
    }

    fn uses_positions(&self) -> bool {
        false
    }

    #[inline(always)]
    fn score<N: Number>(&self, distance: N, _: Pair<N>, theta: &[N]) -> N {
        let alpha = theta[0].exp();
        -alpha * (N::of(1.0) + distance / (N::of(2.0) * alpha)).ln()
    }
}

pub(crate) fn main() -> Result<(), Error> {
    let x = Array4::from_shape_fn((1, 2, 12, 4), |(_, m, t, n)| {
        ((m + 3 * t * (n + 1)) as f64).sin()
    });
    let target = Array4::from_shape_fn((1, 2, 12, 4), |(_, m, t, n)| x[[0, m, t / 2 * 2, n]]);
    let mut theta = Array2::zeros((2, 1));
    for step in 0..5 {
        let kernel = Scored::with_parameters(RationalQuadratic, theta.clone());
        let settings = Settings::pairs(kernel, &Mask::none());
        let (output, saved) = attend(&settings, x.view(), x.view(), x.view())?;
        let off = &output - &target;
        println!(
            "step {step}: loss {:.4}, theta {:.3}",
            off.pow2().sum(),
            theta
        );
        let (cotangent, wanted) = (
            2.0 * off,
            Wanted {
                kernel: true,
                ..Wanted::default()
            },
        );
        let gradients = attend_vjp(
            &settings,
            &saved,
            x.view(),
            x.view(),
            x.view(),
            cotangent.view(),
            wanted,
        )?;
        // One set of learnt numbers, `[1, heads, 1]`.
        let gradient = gradients.kernel.expect("it was wanted");
        theta.scaled_add(
            -0.3,
            &gradient.index_axis(bochner_engine::ndarray::Axis(0), 0),
        );
    }
    Ok(())
}
