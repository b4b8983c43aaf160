//! A moving average of the values with learnt forgetting: a scan, without queries, keys or pairs.
//!
//! `cargo run --package bochner-engine --example moving_average`

#![allow(clippy::print_stdout)]

use bochner_engine::ndarray::Array4;
use bochner_engine::numerics::{Real, argument};
use bochner_engine::{Error, Mask, Position, PositionGradients, Scan, Settings, Shape, attend};

/// $s_t = \lambda s_{t - 1} + (1 - \lambda) v_t$, where $\lambda$ is learnt for each head.
#[derive(Debug)]
pub struct MovingAverage<T> {
    /// $\lambda$ of each head.
    pub kept: Vec<T>,
}

impl<T: Real> Scan<T> for MovingAverage<T> {
    fn check(&self, shape: &Shape) -> Result<(), Error> {
        let lengths = [self.kept.len()];
        Ok(argument::shape("kept", &[shape.heads], &lengths)?)
    }

    fn state(&self, _width: usize, value_width: usize) -> usize {
        value_width
    }

    fn parameters(&self) -> usize {
        1
    }

    fn step(&self, at: Position<T>, state: &mut [T], out: &mut [T]) {
        let kept = self.kept[at.head];
        let numbers = state.iter_mut().zip(at.v);
        numbers.for_each(|(s, &v)| *s = kept * *s + (T::one() - kept) * v);
        out.copy_from_slice(state);
    }

    fn pull(
        &self,
        at: Position<T>,
        before: &[T],
        cotangent: &[T],
        state: &mut [T],
        gradients: PositionGradients<T>,
    ) {
        let kept = self.kept[at.head];
        for n in 0..state.len() {
            let along = state[n] + cotangent[n];
            gradients.v[n] += (T::one() - kept) * along;
            gradients.parameters[0] += along * (before[n] - at.v[n]);
            state[n] = kept * along;
        }
    }
}

pub(crate) fn main() -> Result<(), Error> {
    let x = Array4::from_shape_fn((1, 2, 8, 1), |(_, _, t, _)| {
        (t as f64 - 2.0).clamp(0.0, 1.0)
    });
    let kept = vec![0.5, 0.9];
    let settings = Settings::scan(MovingAverage { kept }, &Mask::causal());
    let (output, _) = attend(&settings, x.view(), x.view(), x.view())?;
    println!("averages of a step, for each head: {output:.3}");
    Ok(())
}
