//! Powers of two, divided by the power of two that is next to their sum.

use super::{Normaliser, OnlineSoftmax, Pulled};
use crate::bias::RowBias;
use crate::engine::{Exponents, Level, RowBlock, RowStatistics};
use crate::score::Score;
use bochner_numerics::Real;
use bochner_numerics::instructions::Arithmetic;
use std::f64::consts::LOG2_E;
use std::ops::Range;

/// $\alpha_{ij} = 2^{x_{ij} - \gamma_i}$ with whole scores x and $\gamma_i = \lceil \log_2 \sum_l 2^{x_{il}} \rceil$.
///
/// Everything up to the last division is softmax to the base 2, which takes keys a block at a time. $\gamma$ is not:
/// terms far below the largest decide it where the others sum up to a power of two, and no number of a fixed size
/// holds them all. A rounded sum is enough wherever no power of two lies within its error; elsewhere the row's
/// scores are looked at a second time, and counted. The values are summed up once, because $\gamma$ only divides them.
///
/// With a bias or a magnitude scores are not whole, and $\gamma$ is that of the rounded sum.
#[derive(Debug)]
pub(crate) struct Shiftmax;

impl<T: Real> Normaliser<T> for Shiftmax {
    const HAS_FACTORS: bool = false;

    fn relative<S: Score<T>>(
        score: &S,
        exponents: &Exponents,
        bias: Option<RowBias<T>>,
        keys: Range<usize>,
        reference: Level,
        out: &mut Vec<T>,
    ) {
        OnlineSoftmax::relative(score, exponents, bias, keys, reference, out);
    }

    /// The power of a whole number is exact, and so is its product with what an old maximum costs.
    #[inline(always)]
    fn absorb<S: Score<T>, A: Arithmetic>(
        score: &S,
        block: &RowBlock,
        relative: &[T],
        raw: &mut [T],
        row: &mut RowStatistics<T>,
    ) -> T {
        OnlineSoftmax::absorb::<S, A>(score, block, relative, raw, row)
    }

    /// Lanes of a block add up a sixteenth of its keys each, then sixteen lanes and a rest, then blocks of at least
    /// sixteen keys: no term goes through more than n / 8 + 32 roundings. The bound is four times that.
    fn is_open(row: &RowStatistics<T>, keys: usize) -> bool {
        let error = (keys as f64 / 2.0 + 128.0) * T::epsilon().as_f64();
        let (fraction, _) = libm::frexp(row.normaliser.as_f64());
        let is_near = fraction <= 0.5 * (1.0 + error) || fraction >= 1.0 - error;
        is_near && row.reference == Level::NONE
    }

    fn finish(row: &mut RowStatistics<T>, open: Option<&[T]>) {
        let counted = open.and_then(|scores| {
            let kept = scores.iter().filter(|x| x.is_finite());
            gamma(levels(kept.map(|x| x.as_f64() as i64)))
        });
        let power = match counted {
            Some(gamma) => gamma as f64 - row.largest.as_f64(),
            None => {
                // The whole part of what the row's weights are relative to moves gamma alone.
                let start = row.largest.as_f64() + row.reference.value() * LOG2_E;
                let part = if start.is_finite() {
                    start - start.floor()
                } else {
                    0.0
                };
                (row.normaliser.as_f64().log2() + part).ceil() - part
            }
        };
        let divisor = T::of(power.exp2());
        row.total = row.normaliser / divisor;
        row.normaliser = divisor;
    }

    /// $\partial \alpha_i / \partial x_j = \alpha_i (\delta_{ij} - p_j) \ln 2$ with $p_j = \alpha_j / \sum_l \alpha_l$:
    /// the ceiling counts as the identity.
    #[inline(always)]
    fn pull<S: Score<T>, A: Arithmetic>(
        score: &S,
        block: &RowBlock,
        relative: &[T],
        row: &RowStatistics<T>,
        pulled: Pulled<T>,
    ) {
        let delta = pulled.delta / row.total;
        let pulled = Pulled { delta, ..pulled };
        OnlineSoftmax::pull::<S, A>(score, block, relative, row, pulled);
    }
}

/// The distinct values in ascending order, with how many there are of each: by counting where they lie close
/// together, otherwise by sorting.
pub(crate) fn levels(values: impl Iterator<Item = i64>) -> Vec<(i64, u64)> {
    let mut values: Vec<i64> = values.collect();
    let (Some(&lowest), Some(&highest)) = (values.iter().min(), values.iter().max()) else {
        return Vec::new();
    };
    let range = highest.abs_diff(lowest) as usize;
    if range < 2 * values.len() + 256 {
        let mut counts = vec![0; range + 1];
        values
            .iter()
            .for_each(|x| counts[(x - lowest) as usize] += 1);
        let levels = (lowest..).zip(counts);
        return levels.filter(|&(_, count)| count > 0).collect();
    }
    values.sort_unstable();
    let runs = values.chunk_by(|a, b| a == b);
    runs.map(|run| (run[0], run.len() as u64)).collect()
}

/// The smallest whole $\gamma$ with $\sum_j 2^{x_j} \le 2^\gamma$, given the distinct values of x in ascending order
/// and how many there are of each; `None` if there is none.
///
/// Going upwards, the sum so far is a whole number of powers of the value that has been reached, and a part of
/// one, of which only matters whether it is there.
pub(crate) fn gamma(levels: impl IntoIterator<Item = (i64, u64)>) -> Option<i64> {
    let mut levels = levels.into_iter();
    let (mut value, mut sum) = levels.next()?;
    let mut has_part = false;
    for (next, count) in levels {
        let gap = next.abs_diff(value).min(64) as u32;
        let whole = sum.checked_shr(gap).unwrap_or(0);
        has_part |= whole.checked_shl(gap).unwrap_or(0) != sum;
        (value, sum) = (next, whole + count);
    }
    let over = sum - 1 + u64::from(has_part);
    Some(value + i64::from(u64::BITS - over.leading_zeros()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::LN_2;

    fn of(values: &[i64]) -> Option<i64> {
        gamma(levels(values.iter().copied()))
    }

    #[test]
    fn gamma_is_the_smallest_power_that_bounds_the_sum() {
        let mut state = 1_u64;
        let mut random = |n: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % n
        };
        for _ in 0..2000 {
            let n = 1 + random(20) as usize;
            let range = [3, 20, 100][random(3) as usize];
            let values: Vec<i64> = (0..n).map(|_| random(range) as i64 - 50).collect();
            let lowest = *values.iter().min().unwrap();
            let sum: u128 = values.iter().map(|x| 1_u128 << (x - lowest)).sum();
            let bits = u128::BITS - (sum - 1).leading_zeros();
            assert_eq!(of(&values), Some(lowest + i64::from(bits)), "{values:?}");
        }
    }

    #[test]
    fn no_term_is_too_small_to_count() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[-7]), Some(-7));
        assert_eq!(of(&[0, -60]), Some(1));
        assert_eq!(of(&[0, -5_000]), Some(1));
        // A carry through a hundred places.
        let carry: Vec<i64> = (-100..0).chain([-100]).collect();
        assert_eq!(of(&carry), Some(0));
        assert_eq!(of(&[&carry[..], &[-100]].concat()), Some(1));
    }

    #[test]
    fn the_base_is_two_to_the_bit() {
        assert_eq!(LN_2 * LOG2_E, 1.0);
    }
}
