//! Retention as a scan: a state of constant size, in which earlier positions decay.
//!
//! `cargo run --package bochner-engine --example retention_scan`

#![allow(clippy::print_stdout)]

use bochner_engine::ndarray::Array4;
use bochner_engine::numerics::Real;
use bochner_engine::{Error, Mask, Position, PositionGradients, Scan, Settings, attend};

/// $S_t = \gamma S_{t - 1} + k_t v_t^T$ and $o_t = q_t^T S_t$ with $\gamma = 1 - 2^{-5 - m}$ in head m (Sun et al. 2023).
#[derive(Clone, Debug)]
pub struct RetentionScan;

fn decay<T: Real>(head: usize) -> T {
    T::of(1.0 - (-5.0 - head as f64).exp2())
}

impl<T: Real> Scan<T> for RetentionScan {
    fn state(&self, width: usize, value_width: usize) -> usize {
        width * value_width
    }

    fn step(&self, at: Position<T>, state: &mut [T], out: &mut [T]) {
        let (decay, width) = (decay::<T>(at.head), out.len());
        out.fill(T::zero());
        for (n, s) in state.iter_mut().enumerate() {
            let (row, column) = (n / width, n % width);
            *s = decay * *s + at.k[row] * at.v[column];
            out[column] += at.q[row] * *s;
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
        let (decay, width) = (decay::<T>(at.head), cotangent.len());
        for (n, s) in state.iter_mut().enumerate() {
            let (row, column) = (n / width, n % width);
            let along = *s + at.q[row] * cotangent[column];
            let after = decay * before[n] + at.k[row] * at.v[column];
            gradients.q[row] += after * cotangent[column];
            gradients.k[row] += along * at.v[column];
            gradients.v[column] += along * at.k[row];
            *s = decay * along;
        }
    }
}

pub(crate) fn main() -> Result<(), Error> {
    let x = Array4::from_shape_fn((1, 2, 200, 4), |(_, m, t, n)| ((m + t * n) as f64).sin());
    let settings = Settings::scan(RetentionScan, &Mask::causal());
    let (output, _) = attend(&settings, x.view(), x.view(), x.view())?;
    println!(
        "last outputs: {:.3}",
        output.index_axis(bochner_engine::ndarray::Axis(2), 199)
    );
    Ok(())
}
