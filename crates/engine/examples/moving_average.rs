//! A moving average of the values with learnt forgetting: a scan, without queries, keys or pairs.
//!
//! `cargo run --package bochner-engine --example moving_average`

#![allow(clippy::print_stdout)]

use bochner_engine::ndarray::Array4;
use bochner_engine::numerics::{Real, argument};
use bochner_engine::{
    Error, Mask, Position, PositionGradients, Scan, Settings, Shape, Wanted, attend, attend_vjp,
};

/// $s_t = \lambda s_{t - 1} + (1 - \lambda) v_t$ with $\lambda = \sigma(\theta)$, where $\theta$ is learnt for each head.
#[derive(Debug)]
pub struct MovingAverage<T> {
    /// $\theta$ of each head.
    pub theta: Vec<T>,
}

impl<T: Real> MovingAverage<T> {
    fn forgetting(&self, head: usize) -> T {
        (T::one() + (-self.theta[head]).exp()).recip()
    }
}

impl<T: Real> Scan<T> for MovingAverage<T> {
    fn check(&self, shape: &Shape) -> Result<(), Error> {
        Ok(argument::shape(
            "theta",
            &[shape.heads],
            &[self.theta.len()],
        )?)
    }

    fn state(&self, _width: usize, value_width: usize) -> usize {
        value_width
    }

    fn parameters(&self) -> usize {
        1
    }

    fn step(&self, at: Position<T>, state: &mut [T], out: &mut [T]) {
        let kept = self.forgetting(at.head);
        for ((s, &v), out) in state.iter_mut().zip(at.v).zip(out) {
            *s = kept * *s + (T::one() - kept) * v;
            *out = *s;
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
        let kept = self.forgetting(at.head);
        let rows = state
            .iter_mut()
            .zip(gradients.v)
            .zip(before)
            .zip(at.v)
            .zip(cotangent);
        for ((((s, dv), &before), &v), &c) in rows {
            let along = *s + c;
            *dv += (T::one() - kept) * along;
            gradients.parameters[0] += along * (before - v) * kept * (T::one() - kept);
            *s = kept * along;
        }
    }
}

pub(crate) fn main() -> Result<(), Error> {
    let x = Array4::from_shape_fn((1, 2, 8, 1), |(_, _, t, _)| f64::from(u8::from(t >= 2)));
    let settings = Settings::scan(
        MovingAverage {
            theta: vec![0.0, 2.0],
        },
        &Mask::causal(),
    );
    let (output, saved) = attend(&settings, x.view(), x.view(), x.view())?;
    println!("averages of a step, a row for each head: {output:.3}");
    let (cotangent, wanted) = (
        &output - &x,
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
    println!(
        "gradient along theta: {:.3}",
        gradients.kernel.expect("it was wanted")
    );
    Ok(())
}
