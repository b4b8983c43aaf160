//! Powers of two, divided by the power of two that is next to their sum.

use super::{Normaliser, OnlineSoftmax, Open, Pulled};
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
/// With a bias or a magnitude scores need not be whole. An open row is then summed up in `f64` with its rounding
/// errors, so that terms far below a power of two still lift the sum above it.
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

    /// A term passes through at most n / 8 + 32 additions: those of its lane, of the sixteen lanes, and of the blocks.
    /// The bound is four times that. A reference other than zero is no whole number of powers of two: there no sum
    /// that differs by rounding alone is likelier to lie at a power than any other.
    ///
    /// A row that all but chooses one key need not be looked at again: with whole scores its sum is the 1 of that key and
    /// more than nothing, which rounding may have lost.
    fn settle(row: &mut RowStatistics<T>, keys: usize, all: bool) -> bool {
        let error = (keys as f64 / 2.0 + 128.0) * T::epsilon().as_f64();
        let (sum, one) = (row.normaliser, T::one());
        if all && keys > 1 && row.reference == Level::NONE && sum.as_f64() <= 1.0 + error {
            row.normaliser = sum.max(one + T::epsilon());
            return true;
        }
        let (fraction, _) = libm::frexp(row.normaliser.as_f64());
        let is_near = fraction <= 0.5 * (1.0 + error) || fraction >= 1.0 - error;
        !is_near || (row.reference != Level::NONE && row.reference.value() != 0.0)
    }

    fn finish(row: &mut RowStatistics<T>, open: Option<&Open<T>>) {
        let power = match open {
            Some(open) => open.gamma(row.largest.as_f64()),
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

impl<T: Real> Open<T> {
    /// $\gamma$ less `largest`: exactly, where scores are whole numbers and keys add nothing to them.
    fn gamma(&self, largest: f64) -> f64 {
        let kept = || self.scores.iter().filter(|x| x.is_finite());
        let exponents = || {
            let with = |(x, d): (&T, &f64)| x.as_f64() + d * LOG2_E;
            self.scores.iter().zip(&self.differences).map(with)
        };
        let adds_nothing = |d: &f64| *d == 0.0 || *d == f64::NEG_INFINITY;
        let counted = if self.differences.is_empty() {
            gamma(levels(kept().map(|x| x.as_f64() as i64)))
        } else if self.differences.iter().all(adds_nothing) {
            let finite = exponents().filter(|x| x.is_finite());
            gamma(levels(finite.map(|x| x as i64)))
        } else {
            return power_above(exponents().map(|x| (x - largest).exp2()));
        };
        counted.map_or(0.0, |gamma| gamma as f64 - largest)
    }
}

/// The exponent of the smallest power of two that some positive numbers do not sum above. What rounding takes from
/// the sum is added up beside it.
fn power_above(terms: impl Iterator<Item = f64>) -> f64 {
    let (sum, lost) = terms.fold((0.0_f64, 0.0), |(sum, lost), term| {
        let (large, small) = (sum.max(term), sum.min(term));
        let next = large + small;
        (next, lost + (small - (next - large)))
    });
    let whole = sum + lost;
    let (fraction, power) = libm::frexp(whole);
    let is_power = fraction == 0.5 && lost - (whole - sum) <= 0.0;
    f64::from(power - i32::from(is_power))
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
/// Going upwards, `sum` counts whole units of $2^{\text{value}}$, and `has_part` says whether a fraction of a unit
/// remains.
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
    fn what_rounding_takes_lifts_a_sum_above_a_power() {
        let of = |terms: &[f64]| power_above(terms.iter().copied());
        assert_eq!(of(&[1.0]), 0.0);
        assert_eq!(of(&[1.0, 1e-300]), 1.0);
        assert_eq!(of(&[1e-300, 1.0]), 1.0);
        assert_eq!(of(&[0.5, 1e-20, 0.5]), 1.0);
        assert_eq!(of(&[0.5, 0.25, 0.25]), 0.0);
        assert_eq!(of(&[1.0 - 1e-16, 0.4e-16]), 0.0);
        assert_eq!(of(&[3.0, 0.5]), 2.0);
    }

    #[test]
    fn the_base_is_two_to_the_bit() {
        assert_eq!(LN_2 * LOG2_E, 1.0);
    }
}
