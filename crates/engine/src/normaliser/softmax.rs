//! The softmax, with a running maximum.

use super::{Block, BlockGradients, Normaliser, Row};
use crate::Kind;
use crate::lanes::{map_and_sum, max};
use bochner_numerics::instructions::{self, Arithmetic, Task, exp2};
use bochner_numerics::operations::record;
use bochner_numerics::scaling::bounded;
use bochner_numerics::{Operations, Real};

/// $\alpha_{ij} = \exp x_{ij} / \sum_l \exp x_{il}$.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Softmax;

impl Softmax {
    /// [`Normaliser::absorb`] of powers of another base, given its binary logarithm, for normalisers that are a softmax
    /// up to their last division.
    pub fn absorb_powers<T: Real>(block: Block<T>, log2_base: T) {
        let (pairs, rows) = (block.scores.len(), block.rows.len());
        record(Operations::multiply_adds(pairs) + Operations::exponentials(pairs + rows));
        instructions::run(Absorb { block, log2_base });
    }

    /// [`Normaliser::pull`] of powers of another base, given its binary and its natural logarithm.
    pub fn pull_powers<T: Real>(block: BlockGradients<T>, log2_base: T, ln_base: T) {
        record(Operations::exponentials(block.scores.len()));
        instructions::run(Pull {
            block,
            log2_base,
            ln_base,
        });
    }
}

impl<T: Real> Normaliser<T> for Softmax {
    fn kind(&self) -> Kind {
        Kind::Logit
    }

    fn takes_sink(&self) -> bool {
        true
    }

    fn add_sink(&self, row: &mut Row<T>, score: T) {
        (row.largest, row.sum) = (score, T::one());
    }

    fn sink_weight(&self, row: &Row<T>, score: T) -> T {
        (score - row.largest).exp() / row.sum
    }

    fn absorb(&self, block: Block<T>) {
        Self::absorb_powers(block, T::LOG2_E());
    }

    fn ln_sum(&self, row: &Row<T>) -> f64 {
        row.largest.as_f64() + row.sum.as_f64().ln()
    }

    fn pull(&self, block: BlockGradients<T>) {
        Self::pull_powers(block, T::LOG2_E(), T::one());
    }
}

/// Powers of a base, relative to the running maximum.
struct Absorb<'a, T> {
    block: Block<'a, T>,
    log2_base: T,
}

impl<T: Real> Task for Absorb<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let Block {
            scores,
            keys,
            rows,
            rescale,
            ..
        } = self.block;
        for ((scores, row), rescale) in scores.chunks_exact_mut(keys).zip(rows).zip(rescale) {
            let now = max(scores).max(row.largest);
            if now == T::neg_infinity() {
                // No key is kept so far, unless a score is NaN.
                let all = scores
                    .iter()
                    .find(|x| x.is_nan())
                    .copied()
                    .unwrap_or_default();
                scores.fill(all);
                row.sum += all;
                *rescale = T::one();
                continue;
            }
            // The difference comes first: it is exact where it decides anything.
            let weight = |x: T| exp2::<T, A>((x - now) * self.log2_base);
            *rescale = exp2::<T, A>((row.largest - now) * self.log2_base);
            row.largest = now;
            row.sum = *rescale * row.sum + map_and_sum(scores, weight);
        }
    }
}

/// The gradients of weights that are powers of a base.
struct Pull<'a, T> {
    block: BlockGradients<'a, T>,
    log2_base: T,
    ln_base: T,
}

impl<T: Real> Task for Pull<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let BlockGradients {
            scores,
            weights,
            keys,
            rows,
            deltas,
            dropout,
            ..
        } = self.block;
        let all = scores
            .chunks_exact_mut(keys)
            .zip(weights.chunks_exact_mut(keys));
        for (r, ((scores, weights), row)) in all.zip(rows).enumerate() {
            if row.largest == T::neg_infinity() {
                // No key is kept.
                scores.fill(T::zero());
                weights.fill(T::zero());
                continue;
            }
            let (inverse, largest) = (bounded(row.sum.recip()), row.largest);
            let delta = deltas[r] / row.total;
            let weight = |x: T| exp2::<T, A>((x - largest) * self.log2_base) * inverse;
            match dropout.map(|all| &all[r * keys..][..keys]) {
                None => {
                    for (x, dp) in scores.iter_mut().zip(weights) {
                        let weight = weight(*x);
                        *x = weight * (*dp - delta) * self.ln_base;
                        *dp = weight;
                    }
                }
                Some(factors) => {
                    for ((x, dp), &factor) in scores.iter_mut().zip(weights).zip(factors) {
                        let weight = weight(*x);
                        *x = weight * (*dp * factor - delta) * self.ln_base;
                        *dp = weight * factor;
                    }
                }
            }
        }
    }
}
