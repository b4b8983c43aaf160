//! How the weights of a row are normalised, one file each.

mod online_softmax;
mod shiftmax;
mod sum;

pub(crate) use online_softmax::OnlineSoftmax;
pub(crate) use shiftmax::{Shiftmax, gamma, levels};
pub(crate) use sum::Sum;

use crate::bias::RowBias;
use crate::engine::{Exponents, Level, RowBlock, RowStatistics};
use crate::score::Score;
use bochner_numerics::instructions::Arithmetic;
use bochner_numerics::{Buffer, Real};
use std::fmt::Debug;
use std::ops::Range;

/// A way to normalise the weights of a row, of which a block of keys is known at a time.
///
/// `relative` holds what each key of the block multiplies its similarity with, or adds to its raw
/// score; it is empty where keys do neither.
///
/// A row's weights are quotients: blocks are added up before the row is known, and divided once at its end.
/// Weights that are another function of the whole row (clipped softmax, sparsemax) cannot be written as a
/// normaliser; they would be a mechanism of their own that sees whole rows.
///
/// The engine reads the normaliser of a row, too. A row of normaliser 0 has met no key. A row whose normaliser is at most
/// the smallest normal number over epsilon has lost its weights beside its loudest key: it is computed again, relative to
/// the loudest key whose weight is not zero.
pub(crate) trait Normaliser<T: Real>: Debug + Send + Sync + 'static {
    /// Whether weights are products, so that every key has a factor, be it one.
    const HAS_FACTORS: bool;

    /// Appends what some keys multiply or add, relative to the row's reference; under a bias, those of one
    /// row.
    fn relative<S: Score<T>>(
        score: &S,
        exponents: &Exponents,
        bias: Option<RowBias<T>>,
        keys: Range<usize>,
        reference: Level,
        out: &mut Vec<T>,
    );

    /// Replaces the raw scores of a block by weights relative to what the row knows, and adds them to the
    /// row's normaliser; returns what everything summed up before must be multiplied with.
    fn absorb<S: Score<T>, A: Arithmetic>(
        score: &S,
        block: &RowBlock,
        relative: &[T],
        raw: &mut [T],
        row: &mut RowStatistics<T>,
    ) -> T;

    /// Whether the row's sum over at most so many keys, or over just as many if it keeps `all`, is near enough for
    /// [`Normaliser::finish`], or could be made so.
    fn settle(_row: &mut RowStatistics<T>, _keys: usize, _all: bool) -> bool {
        true
    }

    /// Changes the normaliser of a row that has absorbed all its keys, at least one, into what its sums are
    /// divided by, here and in [`Normaliser::pull`]: by default it is that already. A row begins with a
    /// normaliser of 0 and a largest score of minus infinity.
    ///
    /// A row that could not be [settled](Normaliser::settle) is given its keys once more.
    fn finish(_row: &mut RowStatistics<T>, _open: Option<&Open<T>>) {}

    /// Recomputes the normalised weights of a block and pulls their gradients back.
    fn pull<S: Score<T>, A: Arithmetic>(
        score: &S,
        block: &RowBlock,
        relative: &[T],
        row: &RowStatistics<T>,
        pulled: Pulled<T>,
    );
}

/// The keys of one row, all at once.
pub(crate) struct Open<T: Real> {
    /// The raw scores, minus infinity where the row keeps no key.
    pub(crate) scores: Buffer<T>,
    /// Exponents and biases less the row's reference; empty where keys have neither.
    pub(crate) differences: Vec<f64>,
}

/// One row of a block in the backward pass.
pub(crate) struct Pulled<'a, T> {
    /// What dropout multiplies the weights with.
    pub(crate) factors: &'a [T],
    /// $dO_i \cdot O_i$.
    pub(crate) delta: T,
    /// The raw scores; then their gradients, in units of the score's scale.
    pub(crate) x: &'a mut [T],
    /// The gradients of the weights after dropout; then these weights.
    pub(crate) dp: &'a mut [T],
    /// To become the gradients of the exponents; not written where keys add nothing.
    pub(crate) p: &'a mut [T],
}

impl<T: Real> Pulled<'_, T> {
    /// From weights in `p` and their derivatives in `x` to the gradients of a quotient.
    #[inline(always)]
    fn of_quotient(self) {
        let weights = self.p.iter_mut().zip(self.x).zip(self.dp);
        for (((p, x), dp), &factor) in weights.zip(self.factors) {
            let gradient = *dp * factor - self.delta;
            *dp = *p * factor;
            *x *= gradient;
            *p *= gradient;
        }
    }
}

/// $1 / x$, or the largest number where that overflows: 0 * inf is no weight. NaN stays NaN.
#[inline(always)]
pub(crate) fn finite_inverse<T: Real>(x: T) -> T {
    let inverse = x.recip();
    if inverse > T::max_value() {
        T::max_value()
    } else {
        inverse
    }
}
