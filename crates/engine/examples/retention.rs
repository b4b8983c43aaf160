//! Retention: a decay in place of the softmax, as pairs; `retention_scan` is the same as a scan.
//!
//! `cargo run --package bochner-engine --example retention`

#![allow(clippy::print_stdout)]

use bochner_engine::ndarray::Array4;
use bochner_engine::numerics::Real;
use bochner_engine::{
    Error, Kind, Mask, Number, Pair, Raw, Score, Settings, Unnormalised, weights,
};
use std::sync::Arc;

/// $o_i = \sum_{j \le i} \gamma^{i - j} (q_i \cdot k_j)  v_j$ with $\gamma = 1 - 2^{-5 - m}$ in head m (Sun et al. 2023).
#[derive(Clone, Debug)]
pub struct Retention;

impl Score for Retention {
    const RAW: Raw = Raw::Product;

    fn kind(&self) -> Kind {
        Kind::Weight
    }

    #[inline(always)]
    fn score<N: Number>(&self, product: N, pair: Pair<N>, _: &[N]) -> N {
        let decay = 1.0 - (-5.0 - pair.head as f64).exp2();
        product * ((pair.query - pair.key) * N::of(decay.ln())).exp()
    }
}

/// Returns retention under a mask, which should be causal.
pub fn settings<T: Real>(mask: &Mask) -> Settings<T> {
    Settings {
        normaliser: Arc::new(Unnormalised),
        ..Settings::score(Retention, mask)
    }
}

pub(crate) fn main() -> Result<(), Error> {
    let ones = Array4::<f64>::ones((1, 3, 100, 1));
    let all = weights(&settings(&Mask::causal()), ones.view(), ones.view())?;
    for head in 0..3 {
        let weight = all[[0, head, 99, 0]];
        println!("head {head} keeps {weight:.4} of a position after 99 steps");
    }
    Ok(())
}
