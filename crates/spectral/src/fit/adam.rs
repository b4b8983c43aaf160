//! Adam, with a learning rate that falls to zero.
//!
//! `bochner_ops::AdamRule` takes the same step, but rounds its factors in another order: with it the last digits
//! of fits would change.

/// The state of Adam for one list of parameters.
pub(super) struct Adam {
    /// The running averages of the gradient and of its square.
    moments: Vec<(f64, f64)>,
    taken: i32,
}

const BETAS: (f64, f64) = (0.9, 0.999);
const EPSILON: f64 = 1e-10;

impl Adam {
    pub(super) fn new(count: usize) -> Self {
        Self {
            moments: vec![(0.0, 0.0); count],
            taken: 0,
        }
    }

    /// One step downhill.
    pub(super) fn step(&mut self, rate: f64, parameters: &mut [f64], gradient: &[f64]) {
        self.taken = self.taken.saturating_add(1);
        let (b1, b2) = BETAS;
        let (c1, c2) = (1.0 - b1.powi(self.taken), 1.0 - b2.powi(self.taken));
        let state = self.moments.iter_mut().zip(gradient);
        for (p, ((m, v), g)) in parameters.iter_mut().zip(state) {
            *m = b1 * *m + (1.0 - b1) * g;
            *v = b2 * *v + (1.0 - b2) * g * g;
            *p -= rate * (*m / c1) / ((*v / c2).sqrt() + EPSILON);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_steps_are_those_of_the_formula() {
        let (mut adam, mut point) = (Adam::new(1), [1.0]);
        adam.step(0.1, &mut point, &[2.0]);
        assert!((point[0] - 0.9).abs() < 1e-9);
        adam.step(0.1, &mut point, &[-4.0]);
        let mean = (0.9 * 0.2 - 0.1 * 4.0) / (1.0 - 0.81);
        let square: f64 = (0.999 * 0.004 + 0.001 * 16.0) / (1.0 - 0.999 * 0.999);
        assert!((point[0] - (0.9 - 0.1 * mean / square.sqrt())).abs() < 1e-8);
    }
}
