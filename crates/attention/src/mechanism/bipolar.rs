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

#[cfg(feature = "conformance")]
mod conformance {
    use super::*;
    use crate::conformance::*;
    use ndarray::ArrayView1;

    impl Conformance for Bipolar {
        /// The window is so narrow that no number lies in it: differences see the steps of t as constant.
        fn examples() -> Vec<Self> {
            let of = |threshold| Self {
                threshold,
                surrogate_width: 1e-9,
            };
            [0.5, 0.9].map(of).into()
        }

        fn refused() -> Vec<(&'static str, Self)> {
            let of = |threshold, surrogate_width| Self {
                threshold,
                surrogate_width,
            };
            vec![
                ("threshold", of(-0.1, 1.0)),
                ("threshold", of(f64::INFINITY, 1.0)),
                ("surrogate_width", of(0.5, 0.0)),
                ("surrogate_width", of(0.5, f64::NAN)),
            ]
        }

        fn extreme(&self, rng: &mut dyn RngCore) -> Self {
            let [threshold, surrogate_width] = [(); 2].map(|()| power_of_ten(-30.0..30.0, rng));
            Self {
                threshold,
                surrogate_width,
            }
        }

        fn reference(
            &self,
            inputs: &Streams<f64>,
            _: &[f64],
            pass: &Pass,
        ) -> Result<Reference, Error> {
            let spike =
                |x: f64| x.signum() * f64::from(u8::from(x != 0.0 && x.abs() >= self.threshold));
            let weight = |pair: Pair| {
                let products = pair.q.iter().zip(pair.k);
                let score: f64 = products.map(|(&q, &k)| spike(q) * spike(k)).sum();
                score.exp2()
            };
            let dropout = pass.weight_dropout()?;
            Ok(Reference::by_quotient(inputs, dropout, weight, denominator))
        }
    }

    /// The sum in units of the smallest weight is a whole number: 128 bits hold it for widths up to 59.
    fn denominator(row: ArrayView1<f64>) -> f64 {
        let kept = || row.iter().filter(|&&w| w > 0.0);
        let smallest = kept().copied().fold(f64::INFINITY, f64::min);
        let sum: u128 = kept().map(|w| (w / smallest) as u128).sum();
        match sum {
            0 => 0.0,
            sum => smallest * sum.next_power_of_two() as f64,
        }
    }
}
