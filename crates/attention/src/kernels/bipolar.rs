//! The inner product of ternary numbers, to the base 2.

use crate::gamma::{gamma, levels, power_above};
use bochner_engine::{
    Block, BlockGradients, Error, HeadRows, Kind, Normaliser, PairKernel, Row, Shape, Softmax, Tile,
};
use bochner_numerics::{ArgumentError, Mat, Real, argument};
use std::f64::consts::{LN_2, LOG2_E};

/// $x_{ij} = t(q_i) \cdot t(k_j)$ with $t(x) = \operatorname{sign}(x) [|x| \ge \theta]$, exponents of 2.
///
/// Products of ternary numbers are whole numbers up to the width, exact in any order (in `f32` up to a width of $2^{24}$).
#[derive(Clone, Debug)]
pub(super) struct Bipolar {
    /// $\theta$.
    pub(super) threshold: f64,
    /// The width of the window around $\pm\theta$ in which t counts as a slope of one over it; `None` if queries and
    /// keys are ternary already: their gradient is passed through.
    pub(super) window: Option<f64>,
}

/// Refuses a threshold that is negative or not finite.
pub(crate) fn checked_threshold(threshold: f64) -> Result<(), ArgumentError> {
    argument::non_negative("threshold", threshold)
}

/// $t(x)$.
#[inline(always)]
pub(crate) fn spike<T: Real>(x: T, threshold: T) -> T {
    if x >= threshold && x > T::zero() {
        T::one()
    } else if x <= -threshold && x < T::zero() {
        -T::one()
    } else {
        T::zero()
    }
}

impl<T: Real> PairKernel<T> for Bipolar {
    fn kind(&self) -> Kind {
        Kind::Logit
    }

    fn check(&self, _: &Shape) -> Result<(), Error> {
        checked_threshold(self.threshold)?;
        if let Some(window) = self.window {
            argument::positive("surrogate_width", window)?;
        }
        Ok(())
    }

    fn scores_are_raw(&self) -> bool {
        true
    }

    fn operands(&self, rows: HeadRows<T>, out: &mut Vec<T>) {
        let threshold = T::of(self.threshold);
        out.extend(rows.x.data().iter().map(|&x| spike(x, threshold)));
    }

    fn pull_operands(&self, rows: HeadRows<T>, gradient: Mat<T>, out: &mut [T], _: &mut [T]) {
        out.copy_from_slice(gradient.data());
        let Some(window) = self.window else {
            return;
        };
        for (out, x) in out.iter_mut().zip(rows.x.data()) {
            let distance = (x.as_f64().abs() - self.threshold).abs();
            *out = match distance < 0.5 * window {
                true => T::of(out.as_f64() / window),
                false => T::zero(),
            };
        }
    }

    fn slopes(&self, _: &Tile<T>, raw: &mut [T], scores: &mut [T]) {
        scores.copy_from_slice(raw);
        raw.fill(T::one());
    }
}

/// $\alpha_{ij} = 2^{x_{ij} - \gamma_i}$ with whole scores x and $\gamma_i = \lceil \log_2 \sum_l 2^{x_{il}} \rceil$.
///
/// Everything up to the last division is the softmax to the base 2, which takes keys a block at a time. $\gamma$ is not:
/// terms far below the largest decide it where the others sum up to a power of two, and no number of a fixed size
/// holds them all. A rounded sum is enough wherever no power of two lies within its error; elsewhere the row's
/// scores are looked at a second time, and counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShiftmaxNormaliser;

impl<T: Real> Normaliser<T> for ShiftmaxNormaliser {
    fn kind(&self) -> Kind {
        Kind::Logit
    }

    fn ln_base(&self) -> f64 {
        LN_2
    }

    /// The power of a whole number is exact, and so is its product with the factor of an old maximum.
    fn absorb(&self, block: Block<T>) {
        Softmax::absorb_powers(block, T::one());
    }

    /// A term passes through at most n / 8 + 32 additions: those of its lane, of the sixteen lanes, and of the blocks.
    /// The bound is four times that.
    fn finish(&self, row: &mut Row<T>, keys: usize, whole: &mut dyn FnMut() -> Vec<f64>) {
        let error = (keys as f64 / 2.0 + 128.0) * T::epsilon().as_f64();
        let (fraction, power) = libm::frexp(row.sum.as_f64());
        let is_near = fraction <= 0.5 * (1.0 + error) || fraction >= 1.0 - error;
        let largest = row.largest.as_f64() + row.reference() * LOG2_E;
        let power = match is_near || largest.fract() != 0.0 {
            true => exact_power(&whole()) - largest,
            false => f64::from(power),
        };
        let divisor = T::of(power.exp2());
        (row.total, row.sum) = (row.sum / divisor, divisor);
    }

    fn ln_sum(&self, row: &Row<T>) -> f64 {
        // Before the division the sum was the total times the divisor.
        row.largest.as_f64() * LN_2 + (row.total * row.sum).as_f64().ln()
    }

    /// $\partial \alpha_i / \partial x_j = \alpha_i (\delta_{ij} - p_j) \ln 2$ with $p_j = \alpha_j / \sum_l \alpha_l$:
    /// the ceiling counts as the identity.
    fn pull(&self, block: BlockGradients<T>) {
        Softmax::pull_powers(block, T::one(), T::LN_2());
    }
}

/// $\gamma$ of a row: by counting where all scores are whole numbers, otherwise from their sum with its rounding errors.
fn exact_power(scores: &[f64]) -> f64 {
    let kept = || scores.iter().copied().filter(|x| x.is_finite());
    match kept().all(|x| x.fract() == 0.0 && x.abs() < 1e15) {
        true => gamma(levels(kept().map(|x| x as i64))).map_or(0.0, |gamma| gamma as f64),
        false => {
            // Relative to a whole number, so that powers of two stay such.
            let above = kept().fold(f64::NEG_INFINITY, f64::max).ceil();
            above + power_above(kept().map(|x| (x - above).exp2()))
        }
    }
}
