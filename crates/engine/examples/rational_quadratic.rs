//! Rational quadratic similarity with a learnt exponent, trained by a few steps of gradient descent.
//!
//! `cargo run --package bochner-engine --example rational_quadratic`

#![allow(clippy::print_stdout)]

use bochner_engine::ndarray::{Array2, Array4, Axis};
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

    #[inline(always)]
    fn score<N: Number>(&self, distance: N, _: Pair<N>, theta: &[N]) -> N {
        let alpha = theta[0].exp();
        -alpha * (N::of(1.0) + distance / (N::of(2.0) * alpha)).ln()
    }
}

pub(crate) fn main() -> Result<(), Error> {
    let x = Array4::from_shape_fn((1, 2, 12, 4), |(_, m, t, n)| ((m + 3 * t * n) as f64).sin());
    // Each second position is to hold the value of the one before.
    let target = Array4::from_shape_fn(x.raw_dim(), |(_, m, t, n)| x[[0, m, t / 2 * 2, n]]);
    let (mut theta, x) = (Array2::zeros((2, 1)), x.view());
    for step in 0..5 {
        let kernel = Scored::with_parameters(RationalQuadratic, theta.clone());
        let settings = Settings::pairs(kernel, &Mask::none());
        let (output, saved) = attend(&settings, x, x, x)?;
        let off = &output - &target;
        println!(
            "step {step}: loss {:.4}, theta {theta:.3}",
            off.pow2().sum()
        );
        let wanted = Wanted {
            kernel: true,
            ..Wanted::default()
        };
        let gradients = attend_vjp(&settings, &saved, x, x, x, off.view(), wanted)?;
        // One set of learnt numbers, `[1, heads, 1]`.
        let gradient = gradients.kernel.expect("it was wanted");
        theta.scaled_add(-0.5, &gradient.index_axis(Axis(0), 0));
    }
    Ok(())
}
