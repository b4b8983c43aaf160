//! Learning rates that follow the step.

use serde::{Deserialize, Serialize};

/// The factor on the learning rate, by step.
///
/// ```
/// use bochner_ops::Schedule;
///
/// let schedule = Schedule::InverseSquareRoot { warmup: 400 };
/// assert_eq!(schedule.factor(100), 0.25);
/// assert_eq!(schedule.factor(400), 1.0);
/// assert_eq!(schedule.factor(1600), 0.5);
/// assert_eq!(Schedule::Constant.factor(1600), 1.0);
/// let halving = Schedule::Halving { every: 10 };
/// assert_eq!([10, 11, 20, 21].map(|step| halving.factor(step)), [1.0, 0.5, 0.5, 0.25]);
/// assert_eq!([1, 4, 5].map(|step| Schedule::Warmup { warmup: 4 }.factor(step)), [0.25, 1.0, 1.0]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Always 1.
    #[default]
    Constant,
    /// Rises linearly to 1 at the step `warmup`, then falls with the root of the step:
    /// $\min(t / w, \sqrt{w / t})$; without warm-up, $1 / \sqrt t$.
    InverseSquareRoot {
        /// The step $w$ of the largest factor.
        warmup: u64,
    },
    /// Rises linearly to 1 at the step `warmup` and stays there: $\min(t / w, 1)$; without warm-up, 1.
    Warmup {
        /// The first step $w$ with the factor 1.
        warmup: u64,
    },
    /// Halves after every $n$ steps: $2^{-\lfloor (t - 1) / n \rfloor}$. With $n$ a third of all steps it halves twice.
    Halving {
        /// The number $n$ of steps with one factor (0 is taken as 1).
        every: u64,
    },
}

impl Schedule {
    /// The factor at a step, counted from 1 (0 is taken as 1).
    pub fn factor(&self, step: u64) -> f64 {
        let step = step.max(1) as f64;
        match self {
            Self::Constant => 1.0,
            Self::InverseSquareRoot { warmup } => {
                let warmup = (*warmup).max(1) as f64;
                (step / warmup).min((warmup / step).sqrt())
            }
            Self::Warmup { warmup } => (step / (*warmup).max(1) as f64).min(1.0),
            Self::Halving { every } => {
                let halvings = (step as u64 - 1) / (*every).max(1);
                0.5_f64.powf(halvings as f64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_those_of_the_formulas() {
        let factors = |schedule: Schedule| [0, 1, 2, 4, 9, 16].map(|step| schedule.factor(step));
        assert_eq!(factors(Schedule::Constant), [1.0; 6]);
        let rising = Schedule::InverseSquareRoot { warmup: 4 };
        assert_eq!(factors(rising), [0.25, 0.25, 0.5, 1.0, 2.0 / 3.0, 0.5]);
        let falling = Schedule::InverseSquareRoot { warmup: 0 };
        let roots = [1.0, 1.0, 0.5_f64.sqrt(), 0.5, (1.0 / 9.0_f64).sqrt(), 0.25];
        assert_eq!(factors(falling), roots);
        let warm = Schedule::Warmup { warmup: 4 };
        assert_eq!(factors(warm), [0.25, 0.25, 0.5, 1.0, 1.0, 1.0]);
        assert_eq!(factors(Schedule::Warmup { warmup: 0 }), [1.0; 6]);
        let halving = Schedule::Halving { every: 4 };
        assert_eq!(factors(halving), [1.0, 1.0, 1.0, 1.0, 0.25, 0.125]);
    }
}
