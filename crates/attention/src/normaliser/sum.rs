//! Weights that are not negative, divided by their sum.

use super::{Normaliser, Pulled, finite_inverse};
use crate::bias::RowBias;
use crate::engine::{Exponents, Level, RowBlock, RowStatistics, add, sum, total};
use crate::score::Score;
use bochner_numerics::Operations;
use bochner_numerics::Real;
use bochner_numerics::instructions::Arithmetic;
use bochner_numerics::operations::record;
use std::ops::Range;

/// $\alpha_{ij} = s_{ij} g_{ij} / \sum_l s_{il} g_{il}$ with $g_{ij} = \exp(u_j - r_i)$, where $r_i$ is the
/// largest exponent of the row's keys.
///
/// Where all similarities of a row are zero, its weights are those of the factors g alone.
#[derive(Debug)]
pub(crate) struct Sum;

impl<T: Real> Normaliser<T> for Sum {
    const HAS_FACTORS: bool = true;

    fn relative<S: Score<T>>(
        _: &S,
        exponents: &Exponents,
        bias: Option<RowBias<T>>,
        keys: Range<usize>,
        reference: Level,
        out: &mut Vec<T>,
    ) {
        exponents.relative(bias, keys, reference, out);
    }

    #[inline(always)]
    fn absorb<S: Score<T>, A: Arithmetic>(
        score: &S,
        block: &RowBlock,
        relative: &[T],
        raw: &mut [T],
        row: &mut RowStatistics<T>,
    ) -> T {
        if row.level {
            raw.copy_from_slice(relative);
        } else {
            score.prepare_row(raw);
            record(Operations::multiply_adds(S::MULTIPLY_ADDS * raw.len()));
            let all = weigh::<T, S, A>(score, raw, relative);
            if block.keeps_all() {
                row.normaliser += all;
                return T::one();
            }
        }
        block.fill_masked(raw, T::zero());
        row.normaliser += sum(raw);
        T::one()
    }

    #[inline(always)]
    fn pull<S: Score<T>, A: Arithmetic>(
        score: &S,
        block: &RowBlock,
        relative: &[T],
        row: &RowStatistics<T>,
        pulled: Pulled<T>,
    ) {
        let Pulled { x, dp, p, .. } = pulled;
        // Without a floor the normaliser can be so small that its reciprocal overflows.
        let inverse = finite_inverse(row.normaliser);
        if row.level {
            let weights = p.iter_mut().zip(relative);
            weights.for_each(|(p, &g)| *p = g * inverse);
            x.fill(T::zero());
        } else {
            score.prepare_row_and_slopes(x, p);
            let factor = score.slope_factor();
            // Near a common zero of all a row's similarities, without a floor, the derivative of their
            // logarithms grows without bound; this far it is rounding alone.
            let steepest = T::max_value().sqrt().sqrt();
            for ((x, p), &g) in x.iter_mut().zip(p.iter_mut()).zip(relative) {
                let (s, slope) = score.score_and_slope::<A>(*x, *p);
                *p = s * g * inverse;
                *x = (slope * g * inverse * factor).max(-steepest).min(steepest);
            }
        }
        block.fill_masked(p, T::zero());
        block.fill_masked(x, T::zero());
        block.fill_masked(dp, T::zero());
        Pulled { x, dp, p, ..pulled }.of_quotient();
    }
}

/// Replaces all raw scores by weights, and returns their [`sum`].
#[inline(always)]
fn weigh<T: Real, S: Score<T>, A: Arithmetic>(score: &S, row: &mut [T], g: &[T]) -> T {
    let mut lanes = [T::zero(); 16];
    let ((chunks, rest), (given, given_rest)) = (row.as_chunks_mut::<16>(), g.as_chunks::<16>());
    for (chunk, given) in chunks.iter_mut().zip(given) {
        *chunk = std::array::from_fn(|n| score.score::<A>(chunk[n]) * given[n]);
        add(&mut lanes, chunk);
    }
    for (x, &g) in rest.iter_mut().zip(given_rest) {
        *x = score.score::<A>(*x) * g;
    }
    total(lanes, rest)
}
