//! Retention: a decay in place of the softmax, as pairs and as a scan.
//!
//! `cargo run --package bochner-engine --example retention`

#![allow(clippy::print_stdout)]

use bochner_engine::ndarray::Array4;
use bochner_engine::numerics::Real;
use bochner_engine::{
    Error, Kind, Mask, Number, Pair, Position, PositionGradients, Raw, Scan, Score, Settings,
    Unnormalised, attend,
};
use std::sync::Arc;

/// $o_i = \sum_{j \le i} \gamma^{i - j} (q_i \cdot k_j)\, v_j$ with $\gamma = 1 - 2^{-5 - m}$ in head m (Sun et al. 2023).
#[derive(Clone, Debug)]
pub struct Retention;

fn decay(head: usize) -> f64 {
    1.0 - (-5.0 - head as f64).exp2()
}

impl Score for Retention {
    const RAW: Raw = Raw::Product;

    fn kind(&self) -> Kind {
        Kind::Weight
    }

    #[inline(always)]
    fn score<N: Number>(&self, product: N, pair: Pair<N>, _: &[N]) -> N {
        product * ((pair.query - pair.key) * N::of(decay(pair.head).ln())).exp()
    }
}

impl<T: Real> Scan<T> for Retention {
    fn state(&self, width: usize, value_width: usize) -> usize {
        width * value_width
    }

    fn step(&self, at: Position<T>, state: &mut [T], out: &mut [T]) {
        let decay = T::of(decay(at.head));
        out.fill(T::zero());
        for ((row, &q), &k) in state.chunks_exact_mut(at.v.len()).zip(at.q).zip(at.k) {
            for ((s, &v), out) in row.iter_mut().zip(at.v).zip(&mut *out) {
                *s = decay * *s + k * v;
                *out += q * *s;
            }
        }
    }

    fn pull(
        &self,
        at: Position<T>,
        before: &[T],
        cotangent: &[T],
        state: &mut [T],
        gradients: PositionGradients<T>,
    ) {
        let (decay, width) = (T::of(decay(at.head)), at.v.len());
        for (n, (row, before)) in state
            .chunks_exact_mut(width)
            .zip(before.chunks_exact(width))
            .enumerate()
        {
            for (i, (s, &before)) in row.iter_mut().zip(before).enumerate() {
                let along = *s + at.q[n] * cotangent[i];
                gradients.q[n] += (decay * before + at.k[n] * at.v[i]) * cotangent[i];
                gradients.k[n] += along * at.v[i];
                gradients.v[i] += along * at.k[n];
                *s = decay * along;
            }
        }
    }
}

/// Returns retention by pairs.
pub fn by_pairs<T: Real>(mask: &Mask) -> Settings<T> {
    Settings {
        normaliser: Arc::new(Unnormalised),
        ..Settings::score(Retention, mask)
    }
}

pub(crate) fn main() -> Result<(), Error> {
    let x = Array4::from_shape_fn((1, 2, 200, 4), |(_, m, t, n)| {
        ((m + t * (n + 1)) as f64).sin()
    });
    let of = |settings: Settings<f64>| {
        attend(&settings, x.view(), x.view(), x.view()).map(|(output, _)| output)
    };
    let off = &of(by_pairs(&Mask::causal()))? - &of(Settings::scan(Retention, &Mask::causal()))?;
    println!(
        "pairs and the scan differ by {:e}",
        off.iter().fold(0.0_f64, |most, x| most.max(x.abs()))
    );
    Ok(())
}
