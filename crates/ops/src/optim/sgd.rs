//! The rule of gradient descent with momentum.

use super::check_factor;
use crate::rows::{PIECE, for_each_piece};
use bochner_numerics::{ArgumentError, Real, argument};
use serde::{Deserialize, Serialize};

/// The settings of stochastic gradient descent.
///
/// $$ u \leftarrow \mu u + g, \quad \theta \leftarrow \theta - \eta u $$
///
/// * $\theta$: a parameter, $g$: its gradient, $u$: its velocity, zero at first
/// * $\eta$: `learning_rate`, $\mu$: `momentum`
///
/// ```
/// use bochner_ops::Sgd;
///
/// let (rule, mut x, mut velocity) = (Sgd { learning_rate: 0.5, momentum: 0.5 }, [1.0_f64], [0.0]);
/// rule.step(&mut x, &mut velocity, &[1.0]);
/// rule.step(&mut x, &mut velocity, &[1.0]);
/// assert_eq!((x, velocity), ([-0.25], [1.5]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    rename_all = "kebab-case",
    remote = "Self"
)]
pub struct Sgd {
    /// The learning rate $\eta$, not negative; `1e-2` by default.
    #[serde(alias = "learning_rate")]
    pub learning_rate: f64,
    /// The momentum $\mu$, at least 0 and below 1; none by default.
    pub momentum: f64,
}

impl Default for Sgd {
    fn default() -> Self {
        Self {
            learning_rate: 1e-2,
            momentum: 0.0,
        }
    }
}

bochner_numerics::checked_when_read!(Sgd, checked);

impl Sgd {
    /// Checks settings when they are read: the weights may be of either type.
    fn checked(&self) -> Result<(), ArgumentError> {
        self.validate::<f64>()
    }

    /// `Ok` if weights of the type `T` can be stepped with these settings.
    ///
    /// # Errors
    /// [`ArgumentError::OutOfRange`] names the first that is out of range.
    pub fn validate<T: Real>(&self) -> Result<(), ArgumentError> {
        check_factor::<T>("learning_rate", self.learning_rate)?;
        argument::rate("momentum", self.momentum)
    }

    /// Steps one parameter along its gradient.
    ///
    /// # Panics
    /// Unless velocity and gradient have as many elements as the parameter.
    pub fn step<T: Real>(&self, values: &mut [T], velocity: &mut [T], gradient: &[T]) {
        let n = values.len();
        assert_eq!(
            [velocity.len(), gradient.len()],
            [n; 2],
            "elements of velocity and gradient"
        );
        let [rate, momentum] = [self.learning_rate, self.momentum].map(T::of);
        let pieces = values.chunks_mut(PIECE).zip(velocity.chunks_mut(PIECE));
        for_each_piece(
            pieces.zip(gradient.chunks(PIECE)),
            8 * n,
            |((values, velocity), gradient)| {
                for ((x, u), &g) in values.iter_mut().zip(velocity).zip(gradient) {
                    *u = momentum * *u + g;
                    *x -= rate * *u;
                }
            },
        );
    }
}
