//! The exponentials of scores, divided by their sum, with a running maximum.

use super::{Normaliser, Pulled, finite_inverse};
use crate::bias::RowBias;
use crate::engine::{Exponents, Level, RowBlock, RowStatistics, add, map_and_sum, max};
use crate::score::Score;
use bochner_numerics::instructions::{Arithmetic, exp2};
use bochner_numerics::operations::record;
use bochner_numerics::{Operations, Real};
use std::f64::consts::LOG2_E;
use std::ops::Range;

/// $\alpha_{ij} = \exp x_{ij} / \sum_l \exp x_{il}$, where $x_{ij}$ is the score plus the key's exponent.
#[derive(Debug)]
pub(crate) struct OnlineSoftmax;

impl<T: Real> Normaliser<T> for OnlineSoftmax {
    const HAS_FACTORS: bool = false;

    /// What keys add to their raw scores, in units of these and never so low that a sum would overflow.
    fn relative<S: Score<T>>(
        score: &S,
        exponents: &Exponents,
        bias: Option<RowBias<T>>,
        keys: Range<usize>,
        reference: Level,
        out: &mut Vec<T>,
    ) {
        record(Operations::multiply_adds(keys.len()));
        let lowest = T::min_value().as_f64() / 4.0;
        let scale = score.scale();
        exponents.differences(bias, keys, reference, |keys, differences| {
            let of = |(n, &difference): (usize, &f64)| {
                let term = exponents.term(keys.start + n);
                T::of((difference / scale - term).max(lowest))
            };
            out.extend(differences.iter().enumerate().map(of));
        });
    }

    #[inline(always)]
    fn absorb<S: Score<T>, A: Arithmetic>(
        score: &S,
        block: &RowBlock,
        relative: &[T],
        raw: &mut [T],
        row: &mut RowStatistics<T>,
    ) -> T {
        score.prepare_row(raw);
        raw.iter_mut().for_each(|x| *x = score.score::<A>(*x));
        add(raw, relative);
        block.fill_masked(raw, T::neg_infinity());
        exponentials::<T, A>(raw, binary(score.scale()), row)
    }

    #[inline(always)]
    fn pull<S: Score<T>, A: Arithmetic>(
        score: &S,
        block: &RowBlock,
        relative: &[T],
        row: &RowStatistics<T>,
        pulled: Pulled<T>,
    ) {
        let Pulled {
            x,
            dp,
            p,
            factors,
            delta,
        } = pulled;
        let inverse = finite_inverse(row.normaliser);
        let (largest, scale) = (row.largest, binary::<T>(score.scale()));
        score.prepare_row_and_slopes(x, p);
        record(Operations::exponentials(x.len()));
        let weight = |x: T| exp2::<T, A>((x - largest) * scale) * inverse;
        if relative.is_empty() {
            for (((x, dp), p), &factor) in x.iter_mut().zip(&mut *dp).zip(&*p).zip(factors) {
                let (score, slope) = score.score_and_slope::<A>(*x, *p);
                let weight = weight(score);
                *x = weight * (*dp * factor - delta) * slope;
                *dp = weight * factor;
            }
            block.fill_masked(x, T::zero());
            block.fill_masked(dp, T::zero());
            return;
        }
        for ((x, p), &more) in x.iter_mut().zip(p.iter_mut()).zip(relative) {
            let (score, slope) = score.score_and_slope::<A>(*x, *p);
            *p = weight(score + more);
            *x = *p * slope;
        }
        block.fill_masked(p, T::zero());
        block.fill_masked(x, T::zero());
        block.fill_masked(dp, T::zero());
        Pulled {
            x,
            dp,
            p,
            factors,
            delta,
        }
        .of_quotient();
    }
}

/// The scale with which a difference is the exponent of a power of two, or the largest finite
/// number: a difference of zero must stay zero.
fn binary<T: Real>(scale: f64) -> T {
    T::of(scale * LOG2_E).min(T::max_value())
}

/// $2^{(x - \max) \text{scale}}$ with a running maximum, added to the normaliser; returns what the old
/// maximum costs.
///
/// The difference comes first: it is exact where it decides anything, and never inf - inf.
#[inline(always)]
fn exponentials<T: Real, A: Arithmetic>(raw: &mut [T], scale: T, row: &mut RowStatistics<T>) -> T {
    let before = row.largest;
    let now = max(raw).max(before);
    if now == T::neg_infinity() {
        // No key is kept, unless none is a number.
        let all = raw.iter().find(|x| x.is_nan()).copied();
        raw.fill(all.unwrap_or_default());
        row.normaliser += all.unwrap_or_default();
        return T::one();
    }
    row.largest = now;
    record(Operations::multiply_adds(raw.len() + 1) + Operations::exponentials(raw.len() + 1));
    let weight = |x: T| exp2::<T, A>((x - now) * scale);
    let factor = weight(before);
    let sum = map_and_sum(raw, weight);
    row.normaliser = factor * row.normaliser + sum;
    factor
}
