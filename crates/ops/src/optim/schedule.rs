//! Learning rates that follow the step.

use bochner_numerics::{ArgumentError, argument};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

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
/// let cosine = Schedule::Cosine { warmup: 4, steps: 14 };
/// assert_eq!([1, 4, 5, 10, 15].map(|step| cosine.factor(step)), [0.25, 1.0, 1.0, 0.5, 0.0]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", remote = "Self")]
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
    /// Rises linearly to 1 at the step `warmup`, then falls along a cosine to 0 behind the step `steps`, and stays there:
    /// $t / w$, then $\tfrac12 (1 + \cos \pi \tfrac{t - 1 - w}{n - w})$. PyTorch's `CosineAnnealingLR` with
    /// `T_max` $= n - w$, behind its `LinearLR` if there is a warm-up.
    #[doc(alias = "CosineAnnealingLR")]
    Cosine {
        /// The step $w$ at which the warm-up ends, less than `steps`; 0 for none.
        warmup: u64,
        /// The number $n$ of all steps.
        steps: u64,
    },
}

bochner_numerics::checked_when_read!(Schedule);

impl Schedule {
    /// Checks that a warm-up ends before the last step.
    ///
    /// # Errors
    /// [`ArgumentError::OutOfRange`].
    pub fn validate(&self) -> Result<(), ArgumentError> {
        let Self::Cosine { warmup, steps } = *self else {
            return Ok(());
        };
        let allowed = format!("less than {steps}, the number of all steps");
        argument::in_range(warmup < steps, "warmup", warmup as f64, allowed)
    }

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
            Self::Cosine { warmup, steps } => {
                let (warmup, steps) = (*warmup as f64, *steps as f64);
                if step <= warmup {
                    return step / warmup;
                }
                let share = (step - 1.0 - warmup) / (steps - warmup);
                0.5 * (1.0 + (PI * share.min(1.0)).cos())
            }
        }
    }
}
