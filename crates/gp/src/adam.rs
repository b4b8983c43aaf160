//! The rule of Adam, as an ascent.

use crate::FitConfig;
use bochner_numerics::{ArgumentError, argument};
use serde::{Deserialize, Serialize};

/// The state of Adam.
///
/// This is not `bochner_ops::AdamRule`. The moments are the same to the bit, but that rule takes the powers
/// of the decay rates by `powf`, and divides the step size and not the moment by its correction, and the
/// root and not its argument. Published results fix the last digits of the rule here, and their checkpoints
/// the form of its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Adam {
    /// The running averages of the gradient and of its square.
    moments: Vec<(f64, f64)>,
    /// The number of steps taken.
    taken: i32,
}

impl Adam {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            moments: vec![(0.0, 0.0); count],
            taken: 0,
        }
    }

    /// Refuses a state that no run of Adam over `count` coordinates leads to.
    pub(crate) fn check(&self, count: usize) -> Result<(), ArgumentError> {
        argument::shape("moments", &[count], &[self.moments.len()])?;
        argument::in_range(
            self.taken >= 0,
            "taken",
            f64::from(self.taken),
            "at least 0",
        )?;
        for &(mean, square) in &self.moments {
            argument::in_range(mean.is_finite(), "moments", mean, "finite")?;
            argument::non_negative("the second of moments", square)?;
        }
        Ok(())
    }

    /// Takes one step along the gradient.
    pub(crate) fn climb(
        &mut self,
        config: &FitConfig,
        point: &mut [f64],
        gradient: impl Iterator<Item = f64>,
    ) {
        let FitConfig {
            learning_rate,
            betas: (b1, b2),
            epsilon,
            ..
        } = *config;
        self.taken = self.taken.saturating_add(1);
        let (c1, c2) = (1.0 - b1.powi(self.taken), 1.0 - b2.powi(self.taken));
        for ((p, (m, v)), g) in point.iter_mut().zip(&mut self.moments).zip(gradient) {
            *m = b1 * *m + (1.0 - b1) * g;
            *v = b2 * *v + (1.0 - b2) * g * g;
            *p += learning_rate * (*m / c1) / ((*v / c2).sqrt() + epsilon);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_steps_are_those_of_the_formula() {
        let config = FitConfig {
            learning_rate: 0.1,
            betas: (0.5, 0.75),
            ..Default::default()
        };
        let mut adam = Adam::new(1);
        let mut point = [1.0];
        adam.climb(&config, &mut point, [2.0].into_iter());
        assert!((point[0] - 1.1).abs() < 1e-8);
        adam.climb(&config, &mut point, [-4.0].into_iter());
        // The averages 1 and 1 become -1.5 and 4.75, each of which is divided by its correction.
        let (mean, square) = (-1.5_f64 / 0.75, 4.75_f64 / 0.4375);
        assert!((point[0] - (1.1 + 0.1 * mean / square.sqrt())).abs() < 1e-8);
    }
}
