//! ALiBi with learnt slopes: logits that fall with the distance, in each head as fast as it learns.
//!
//! `cargo run --package bochner-engine --example alibi`

#![allow(clippy::print_stdout)]

use bochner_engine::ndarray::{Array2, Array4};
use bochner_engine::{
    Error, Kind, Mask, Number, Pair, Raw, Score, Scored, Settings, Wanted, alibi_slopes, attend,
    attend_vjp,
};

/// The logit $q \cdot k / \sqrt d - s |i - j|$ with the slope s of the head.
#[derive(Clone, Debug)]
pub struct Alibi;

impl Score for Alibi {
    const RAW: Raw = Raw::Product;

    fn kind(&self) -> Kind {
        Kind::Logit
    }

    fn parameters(&self) -> usize {
        1
    }

    #[inline(always)]
    fn score<N: Number>(&self, product: N, pair: Pair<N>, slope: &[N]) -> N {
        let scale = (pair.width as f64).sqrt().recip();
        product * N::of(scale) - slope[0] * (pair.query - pair.key).abs()
    }
}

pub(crate) fn main() -> Result<(), Error> {
    let heads = 4;
    let x = Array4::from_shape_fn((1, heads, 10, 8), |(_, m, t, n)| {
        ((m + 2 * t + n * n) as f64).sin()
    });
    // They start where the paper has them fixed.
    let slopes = Array2::from_shape_fn((heads, 1), |(m, _)| alibi_slopes(heads)[m]);
    let settings = Settings::pairs(
        Scored::with_parameters(Alibi, slopes.clone()),
        &Mask::causal(),
    );
    let (output, saved) = attend(&settings, x.view(), x.view(), x.view())?;
    // Each position should hold the value of the one before.
    let before = Array4::from_shape_fn(output.raw_dim(), |(b, m, t, n)| x[[b, m, t.max(1) - 1, n]]);
    let (cotangent, wanted) = (
        &output - &before,
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
    println!("slopes   {slopes:.4}");
    println!("gradient {:.4}", gradients.kernel.expect("it was wanted"));
    Ok(())
}
