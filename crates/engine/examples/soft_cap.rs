//! Logits that stay within a bound, as in Gemma 2.
//!
//! `cargo run --package bochner-engine --example soft_cap`

#![allow(clippy::print_stdout)]

use bochner_engine::ndarray::Array4;
use bochner_engine::{Error, Kind, Mask, Number, Pair, Raw, Score, Settings, weights};

/// The logit $c \tanh(q \cdot k / (c \sqrt d))$ with the bound c.
#[derive(Clone, Debug)]
pub struct SoftCap(pub f64);

impl Score for SoftCap {
    const RAW: Raw = Raw::Product;

    fn kind(&self) -> Kind {
        Kind::Logit
    }

    fn uses_positions(&self) -> bool {
        false
    }

    #[inline(always)]
    fn score<N: Number>(&self, product: N, pair: Pair<N>, _: &[N]) -> N {
        let scale = 1.0 / (self.0 * (pair.width as f64).sqrt());
        N::of(self.0) * (product * N::of(scale)).tanh()
    }
}

pub(crate) fn main() -> Result<(), Error> {
    let x = Array4::from_shape_fn((1, 1, 8, 16), |(_, _, t, n)| {
        3.0 * ((5 * t + n * n) as f32).sin()
    });
    let largest = |settings: &Settings<f32>| {
        let all = weights(settings, x.view(), x.view())?;
        Ok::<_, Error>(all.iter().fold(0.0_f32, |most, &weight| most.max(weight)))
    };
    println!(
        "largest weight of the softmax: {:.4}",
        largest(&Settings::softmax(&Mask::none()))?
    );
    for cap in [10.0, 3.0, 1.0] {
        let settings = Settings::score(SoftCap(cap), &Mask::none());
        println!(
            "largest weight with logits up to {cap}: {:.4}",
            largest(&settings)?
        );
    }
    Ok(())
}
