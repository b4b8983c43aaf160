//! Weights as they are.

use super::{Block, BlockGradients, Normaliser, Row};
use crate::Kind;
use crate::lanes::{sum, total};
use bochner_numerics::Real;
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::scaling::bounded;

/// Weights as they are, without a division: $o_i = \sum_j w_{ij} v_j$. For sigmoid attention and retention; weights may
/// be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unnormalised;

impl<T: Real> Normaliser<T> for Unnormalised {
    fn kind(&self) -> Kind {
        Kind::Weight
    }

    fn is_quotient(&self) -> bool {
        false
    }

    fn absorb(&self, block: Block<T>) {
        instructions::run(Absorb(block));
    }

    fn divisor(&self, _: &Row<T>) -> T {
        T::one()
    }

    fn ln_sum(&self, row: &Row<T>) -> f64 {
        row.sum.as_f64().ln()
    }

    fn pull(&self, block: BlockGradients<T>) {
        instructions::run(Pull {
            block,
            is_quotient: false,
        });
    }
}

/// Weights times the factors of their keys, summed up.
pub(super) struct Absorb<'a, T>(pub(super) Block<'a, T>);

impl<T: Real> Task for Absorb<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let Block {
            scores,
            keys,
            factors,
            rows,
            rescale,
        } = self.0;
        rescale.fill(T::one());
        for (scores, row) in scores.chunks_exact_mut(keys).zip(rows) {
            row.sum += match factors {
                None => sum(scores),
                Some(factors) => multiply_and_sum(scores, factors),
            };
        }
    }
}

/// Multiplies weights by factors, and returns their sum.
#[inline(always)]
fn multiply_and_sum<T: Real>(weights: &mut [T], factors: &[T]) -> T {
    let mut lanes = [T::zero(); 16];
    let ((chunks, rest), (of_chunks, of_rest)) =
        (weights.as_chunks_mut::<16>(), factors.as_chunks::<16>());
    for (chunk, factors) in chunks.iter_mut().zip(of_chunks) {
        for ((x, &factor), lane) in chunk.iter_mut().zip(factors).zip(&mut lanes) {
            *x *= factor;
            *lane += *x;
        }
    }
    rest.iter_mut()
        .zip(of_rest)
        .for_each(|(x, &factor)| *x *= factor);
    total(lanes, rest)
}

/// The gradients of weights, divided by their sum or not.
pub(super) struct Pull<'a, T> {
    pub(super) block: BlockGradients<'a, T>,
    pub(super) is_quotient: bool,
}

impl<T: Real> Task for Pull<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let BlockGradients {
            scores,
            weights,
            mut terms,
            keys,
            factors,
            rows,
            deltas,
            dropout,
        } = self.block;
        let all = scores
            .chunks_exact_mut(keys)
            .zip(weights.chunks_exact_mut(keys));
        for (r, ((scores, weights), row)) in all.zip(rows).enumerate() {
            let (inverse, delta) = match self.is_quotient {
                // Without a floor the sum can be so small that its reciprocal overflows.
                true => (bounded(row.sum.recip()), deltas[r]),
                false => (T::one(), T::zero()),
            };
            let of_row = r * keys..(r + 1) * keys;
            if let Some(dropout) = dropout {
                let dropout = &dropout[of_row.clone()];
                weights
                    .iter_mut()
                    .zip(dropout)
                    .for_each(|(dp, &factor)| *dp *= factor);
            }
            match (
                factors,
                terms.as_deref_mut().map(|terms| &mut terms[of_row.clone()]),
            ) {
                (Some(factors), Some(terms)) => {
                    let pairs = scores.iter_mut().zip(weights.iter_mut());
                    for (((x, dp), &factor), term) in pairs.zip(factors).zip(terms) {
                        let (relative, gradient) = (factor * inverse, *dp - delta);
                        *dp = *x * relative;
                        *term = *dp * gradient;
                        *x = bounded(relative * gradient);
                    }
                }
                _ => {
                    for (x, dp) in scores.iter_mut().zip(weights.iter_mut()) {
                        let gradient = *dp - delta;
                        *dp = *x * inverse;
                        *x = bounded(inverse * gradient);
                    }
                }
            }
            if let Some(dropout) = dropout {
                let dropout = &dropout[of_row];
                weights
                    .iter_mut()
                    .zip(dropout)
                    .for_each(|(p, &factor)| *p *= factor);
            }
        }
    }
}
