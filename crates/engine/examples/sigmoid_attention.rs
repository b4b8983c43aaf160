//! Sigmoid attention: each weight by itself, without a sum over the row.
//!
//! `cargo run --package bochner-engine --example sigmoid_attention`

#![allow(clippy::print_stdout)]

use bochner_engine::ndarray::{Array4, Axis};
use bochner_engine::numerics::Real;
use bochner_engine::{
    Error, Kind, Mask, Number, Pair, Raw, Score, Settings, Unnormalised, weights,
};
use std::sync::Arc;

/// The weight $\sigma(q \cdot k / \sqrt d + b)$ (Ramapuram et al. 2024, with $b = -\ln T$).
#[derive(Clone, Debug)]
pub struct Sigmoid {
    /// The offset b.
    pub offset: f64,
}

impl Score for Sigmoid {
    const RAW: Raw = Raw::Product;

    fn kind(&self) -> Kind {
        Kind::Weight
    }

    fn uses_positions(&self) -> bool {
        false
    }

    #[inline(always)]
    fn score<N: Number>(&self, product: N, pair: Pair<N>, _: &[N]) -> N {
        let scale = (pair.width as f64).sqrt().recip();
        (product * N::of(scale) + N::of(self.offset)).sigmoid()
    }
}

/// Returns sigmoid attention to sequences of about `keys` positions.
pub fn settings<T: Real>(keys: usize, mask: &Mask) -> Settings<T> {
    let score = Sigmoid {
        offset: -(keys as f64).ln(),
    };
    Settings {
        normaliser: Arc::new(Unnormalised),
        ..Settings::score(score, mask)
    }
}

pub(crate) fn main() -> Result<(), Error> {
    let x = Array4::from_shape_fn((1, 1, 6, 4), |(_, _, t, n)| ((2 * t + n) as f64).cos());
    let all = weights(&settings(6, &Mask::none()), x.view(), x.view())?;
    println!(
        "sums of the rows, which nothing holds at one: {:.3}",
        all.sum_axis(Axis(3))
    );
    Ok(())
}
