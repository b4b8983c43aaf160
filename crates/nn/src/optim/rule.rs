//! The rule by which Adam changes a parameter.

use super::{AdamConfig, Moments, WeightDecay};
use crate::Element;
use crate::rows::for_each_piece;
use bochner_numerics::instructions::{self, Arithmetic, Task};

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

    pub(super) fn step(&self, values: &mut [E], moments: &mut Moments<E>, gradient: &[E]) {
        /// Elements one thread takes at a time.
        const PIECE: usize = 1 << 14;
        /// Multiplications that take as long as one element.
        const WORK: usize = 16;
        let work = WORK * values.len();
        let moments = moments
            .first
            .chunks_mut(PIECE)
            .zip(moments.second.chunks_mut(PIECE));
        let pieces = values
            .chunks_mut(PIECE)
            .zip(gradient.chunks(PIECE))
            .zip(moments);
        for_each_piece(pieces, work, |((values, gradient), (first, second))| {
            instructions::run(Update {
                rule: self,
                values,
                first,
                second,
                gradient,
            });
        });
    }
}

/// One step of a piece of a parameter.
struct Update<'a, E> {
    rule: &'a Rule<E>,
    values: &'a mut [E],
    first: &'a mut [E],
    second: &'a mut [E],
    gradient: &'a [E],
}

impl<E: Element> Task for Update<'_, E> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let rule = self.rule;
        let moments = self.first.iter_mut().zip(self.second);
        let gradients = moments.zip(self.gradient);
        for (x, ((m, v), &g)) in self.values.iter_mut().zip(gradients) {
            *x *= rule.keep;
            let g = g + rule.l2 * *x;
            *m = rule.betas[0] * *m + rule.rest[0] * g;
            *v = rule.betas[1] * *v + rule.rest[1] * g * g;
            *x -= rule.step_size * *m / (v.sqrt() / rule.correction + rule.epsilon);
        }
    }
}
