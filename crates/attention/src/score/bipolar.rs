//! The inner product of ternary numbers, to the base 2.

use super::{AlongPoints, Given, Gradient, PairKernel, Raw, Score, Side};
use crate::Error;
use crate::engine::{HeadAt, NoRank};
use crate::normaliser::Shiftmax;
use bochner_numerics::instructions::Arithmetic;
use bochner_numerics::{ArgumentError, Buffer, Mat, Real, argument};
use std::f64::consts::LN_2;

/// $a_{ij} = 2^{t(q_i) \cdot t(k_j)}$ with $t(x) = \operatorname{sign}(x) [|x| \ge \theta]$, a row divided by a power
/// of two.
///
/// Products of ternary numbers are whole numbers up to the width, exact in any order (in `f32` up to a width of $2^{24}$).
#[derive(Debug)]
pub(crate) struct Bipolar {
    /// $\theta$.
    pub(crate) threshold: f64,
    /// The width of the window around $\pm\theta$ in which t counts as a slope of one over it; `None` if queries and
    /// keys are ternary already: their gradient is passed through.
    pub(crate) window: Option<f64>,
}

/// Refuses a threshold that is negative or not finite.
pub(crate) fn checked_threshold(threshold: f64) -> Result<(), ArgumentError> {
    argument::non_negative("threshold", threshold)
}

/// $t(x)$; NaN stays NaN.
#[inline(always)]
pub(crate) fn spike<T: Real>(x: T, threshold: T) -> T {
    if x >= threshold && x > T::zero() {
        T::one()
    } else if x <= -threshold && x < T::zero() {
        -T::one()
    } else if x.is_nan() {
        x
    } else {
        T::zero()
    }
}

/// $a_{ij} = 2^{x_{ij}}$, x being a product of ternary numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct PowerOfTwo;

impl<T: Real> Score<T> for PowerOfTwo {
    type Norm = Shiftmax;
    type Rank = NoRank;

    const RAW: Raw = Raw::Ternary;

    fn scale(&self) -> f64 {
        LN_2
    }

    #[inline(always)]
    fn score_and_slope<A: Arithmetic>(&self, raw: T, _: T) -> (T, T) {
        (raw, T::one())
    }
}

impl<T: Real> PairKernel<T> for Bipolar {
    type Score = PowerOfTwo;

    const KEEPS_KEYS: bool = false;

    fn validate(&self, _: usize, _: usize, _: usize) -> Result<(), Error> {
        checked_threshold(self.threshold)?;
        if let Some(window) = self.window {
            argument::positive("surrogate_width", window)?;
        }
        Ok(())
    }

    fn score(&self, _: &HeadAt<T>) -> PowerOfTwo {
        PowerOfTwo
    }

    fn operand(&self, at: &HeadAt<T>, _: &Self::Score, _: Side, x: Mat<T>) -> Option<Buffer<T>> {
        let threshold = T::of(self.threshold);
        let mut spikes = at.numbers().empty(x.data().len());
        spikes.extend(x.data().iter().map(|&x| spike(x, threshold)));
        Some(spikes)
    }

    fn pull_back(
        &self,
        _: &HeadAt<T>,
        _: &Self::Score,
        given: &Given<T>,
        out: Gradient<T>,
    ) -> AlongPoints<T> {
        let (operand, x) = (given.operand, given.x.data());
        match self.window {
            None => out.write(|i| operand[i].as_f64() * LN_2),
            Some(window) => {
                // Finite: next to it stand gradients of zero.
                let slope = (LN_2 / window).min(f64::MAX);
                out.write(|i| {
                    let distance = (x[i].as_f64().abs() - self.threshold).abs();
                    if distance < 0.5 * window {
                        operand[i].as_f64() * slope
                    } else {
                        0.0
                    }
                });
            }
        }
        Vec::new()
    }
}
