//! The rule by which Adam changes a parameter.

use super::{AdamConfig, Moments, WeightDecay};
use crate::{Element, Error, ParameterMut};
use bochner_numerics::parallel;
use dfdx::tensor::{Cpu, Gradients};

/// The factors of one step, in the order in which PyTorch applies them.
pub(super) struct Rule<E> {
    /// What is left of the weight.
    keep: E,
    /// The weight's part in the gradient.
    l2: E,
    betas: [E; 2],
    /// One minus each of them, taken in double precision.
    rest: [E; 2],
    step_size: E,
    /// $\sqrt{1 - \beta_2^t}$.
    correction: E,
    epsilon: E,
}

impl<E: Element> Rule<E> {
    pub(super) fn new(config: &AdamConfig, learning_rate: f64, steps: u64) -> Self {
        let (l2, decoupled) = match config.weight_decay {
            WeightDecay::L2(factor) => (factor, 0.0),
            WeightDecay::Decoupled(factor) => (0.0, factor),
        };
        let bias = config.betas.map(|beta| 1.0 - beta.powf(steps as f64));
        Self {
            keep: E::of(1.0 - learning_rate * decoupled),
            l2: E::of(l2),
            betas: config.betas.map(E::of),
            rest: config.betas.map(|beta| E::of(1.0 - beta)),
            step_size: E::of(learning_rate / bias[0]),
            correction: E::of(bias[1].sqrt()),
            epsilon: E::of(config.epsilon),
        }
    }

    pub(super) fn step(
        &self,
        parameter: &mut dyn ParameterMut<E>,
        moments: &mut Moments<E>,
        gradients: &mut Gradients<E, Cpu>,
        values: &mut Vec<E>,
    ) -> Result<(), Error> {
        /// Elements one thread takes at a time.
        const PIECE: usize = 1 << 14;
        parameter.read_into(values);
        let gradient = &*parameter.gradient(gradients)?;
        let mut pieces: Vec<_> = values
            .chunks_mut(PIECE)
            .zip(moments.first.chunks_mut(PIECE))
            .zip(moments.second.chunks_mut(PIECE))
            .zip(gradient.chunks(PIECE))
            .collect();
        parallel::for_each_chunk(&mut pieces, 1, |_, piece| {
            for (((values, first), second), gradient) in piece {
                self.update(values, first, second, gradient);
            }
        });
        parameter.write(values);
        Ok(())
    }

    #[inline]
    fn update(&self, values: &mut [E], first: &mut [E], second: &mut [E], gradient: &[E]) {
        let moments = first.iter_mut().zip(second);
        for ((x, (m, v)), &g) in values.iter_mut().zip(moments).zip(gradient) {
            *x *= self.keep;
            let g = g + self.l2 * *x;
            *m = self.betas[0] * *m + self.rest[0] * g;
            *v = self.betas[1] * *v + self.rest[1] * g * g;
            *x -= self.step_size * *m / (v.sqrt() / self.correction + self.epsilon);
        }
    }
}
