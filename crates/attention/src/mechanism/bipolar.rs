//! Bipolar self-attention: ternary queries and keys, weights that are powers of two.

use super::{Mechanism, Pass, Streams};
use crate::error::Error;
use crate::kernels::{self, checked_threshold};
use crate::{Card, Settings, card::Rows};
use bochner_numerics::{Real, argument};
use serde::{Deserialize, Serialize};

/// Bipolar attention: powers of two of products of ternary numbers, divided by a power of two; it has no parameters.
///
/// $$\alpha_{ij} = 2^{x_{ij} - \gamma_i} \qquad x_{ij} = t(q_i) \cdot t(k_j) \qquad
/// t(x) = \operatorname{sign}(x) [|x| \ge \theta]$$
///
/// *where* $\gamma_i$ is the smallest whole number with $\sum_j 2^{x_{ij}} \le 2^{\gamma_i}$, so that a row sums to
/// more than 1/2 and at most 1, and $\theta$ is the `threshold`. There is no $1 / \sqrt d$: the scores of wide heads
/// are large, and a row comes close to choosing one key.
///
/// The output is what the paper's last neuron reads. Neurons over steps of time are
/// [`SpikingNeuron`](bochner_ops::SpikingNeuron); [`attend_by_shifts`](crate::fixed_point::attend_by_shifts) computes the output
/// with integers alone.
///
/// # Numerics
/// Scores and $\gamma$ are exact in `f32` and `f64`, however small a term of the sum is. Neither t nor the ceiling in
/// $\gamma$ has a useful derivative: backwards t has the slope 1 / `surrogate_width` where $||x| - \theta|$ is less
/// than half of it, and the ceiling counts as the identity. With a bias, $\gamma$ follows the sum of the
/// weights in `f64`, its rounding errors added.
///
/// # Reference
/// Wang et al. 2025, "Bipolar self-attention for spiking transformers", equation 14 for the sums of rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    rename_all = "kebab-case",
    remote = "Self"
)]
pub struct Bipolar {
    /// The threshold $\theta$, at least 0; numbers of its size are not zero.
    pub threshold: f64,
    /// The width around the threshold in which t has a slope, which is one over it; positive.
    pub surrogate_width: f64,
}

impl Default for Bipolar {
    fn default() -> Self {
        Self {
            threshold: 0.5,
            surrogate_width: 1.0,
        }
    }
}

impl<T: Real> Mechanism<T> for Bipolar {
    fn card(&self) -> Card {
        Card {
            name: "bipolar",
            title: "powers of two of products of ternary queries and keys, a row divided by a power of two",
            paper: "Wang et al. 2025",
            rows: Rows::HalfToOne,
            ..Card::SCORE
        }
    }

    fn validate(&self) -> Result<(), Error> {
        checked_threshold(self.threshold)?;
        Ok(argument::positive("surrogate_width", self.surrogate_width)?)
    }

    fn kernel(&self, inputs: &Streams<T>, _: &[T], _: &Pass) -> Result<Settings<T>, Error> {
        Ok(kernels::bipolar(
            self.threshold,
            self.surrogate_width,
            inputs.mask,
        ))
    }
}
