//! Sweeps over the rows of a block: what happens between two matrix products.

use super::lanes::{add, dot};
use super::{Head, Level, RowStatistics};
use crate::normaliser::{Normaliser, Pulled};
use crate::score::Score;
use bochner_numerics::instructions::{Arithmetic, Task};
use bochner_numerics::{Buffer, Mat, Real};
use std::ops::Range;

/// The keys of a block as one row sees them.
pub(crate) struct RowBlock<'m> {
    /// How many keys the block has.
    keys: usize,
    /// Which of them the row keeps, as far as the matrix lets them.
    kept: Range<usize>,
    /// The matrix's entries for the kept range; `None` without a matrix.
    matrix: Option<&'m [bool]>,
}

impl<'m> RowBlock<'m> {
    pub(super) fn new<T: Real, S: Score<T>>(
        head: &Head<'m, T, S>,
        i: usize,
        keys: &Range<usize>,
    ) -> Self {
        let Range { start, end } = head.rows.range(i);
        let [start, end] = [start, end].map(|j| j.clamp(keys.start, keys.end));
        Self {
            keys: keys.len(),
            kept: start - keys.start..end - keys.start,
            matrix: head.rows.matrix(i).map(|row| &row[start..end]),
        }
    }

    /// Whether the row keeps every key of the block.
    #[inline(always)]
    pub(crate) fn keeps_all(&self) -> bool {
        self.kept == (0..self.keys) && self.matrix.is_none()
    }

    /// Overwrites what the row does not keep, whatever stands there.
    #[inline(always)]
    pub(crate) fn fill_masked<T: Copy>(&self, row: &mut [T], value: T) {
        row[..self.kept.start].fill(value);
        row[self.kept.end..].fill(value);
        let kept = row[self.kept.clone()].iter_mut();
        for (x, &keep) in kept.zip(self.matrix.unwrap_or_default()) {
            if !keep {
                *x = value;
            }
        }
    }
}

/// What the keys of a block multiply similarities with or add to raw scores, kept from row to row
/// while the reference stays.
struct Relative<'a, T> {
    reference: Option<Level>,
    /// These factors or terms are relative to the loudest of all keys.
    packed: &'a [T],
    /// These factors or terms are relative to another reference.
    own: Option<Buffer<T>>,
}

impl<'a, T: Real> Relative<'a, T> {
    fn new<S: Score<T>>(head: &Head<'a, T, S>, keys: &Range<usize>) -> Self {
        let packed = head
            .packed
            .relative
            .as_ref()
            .filter(|_| head.bias.is_none());
        Self {
            reference: packed.map(|(reference, _)| *reference),
            packed: packed.map_or(&[], |(_, all)| &all[keys.clone()]),
            own: None,
        }
    }

    fn get<S: Score<T>>(
        &mut self,
        head: &Head<T, S>,
        i: usize,
        keys: &Range<usize>,
        reference: Level,
    ) -> &[T] {
        let Some(exponents) = head.exponents else {
            return &[];
        };
        if head.bias.is_some() || self.reference != Some(reference) {
            let new = || head.workspace.numbers.empty(keys.len());
            let own = self.own.get_or_insert_with(new);
            own.clear();
            let bias = head.bias.map(|bias| bias.row(i));
            S::Norm::relative(head.score, exponents, bias, keys.clone(), reference, own);
            self.reference = Some(reference);
        }
        self.own.as_deref().map_or(self.packed, Vec::as_slice)
    }
}

/// Turns a block of raw scores into weights relative to the rows' references and adds them to the
/// normalisers.
pub(super) struct Weigh<'a, 'h, T, S> {
    pub(super) head: &'a Head<'h, T, S>,
    pub(super) queries: Range<usize>,
    pub(super) keys: &'a Range<usize>,
    pub(super) block: &'a mut [T],
    pub(super) statistics: &'a mut [RowStatistics<T>],
    /// By how much what a row has summed up before must be multiplied.
    pub(super) factors: &'a mut [T],
}

impl<T: Real, S: Score<T>> Task for Weigh<'_, '_, T, S> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let mut relative = Relative::new(self.head, self.keys);
        let rows = self.block.chunks_exact_mut(self.keys.len());
        let rows = rows.zip(self.statistics).zip(self.factors);
        for (i, ((raw, row), factor)) in self.queries.zip(rows) {
            let at = RowBlock::new(self.head, i, self.keys);
            let given = relative.get(self.head, i, self.keys, row.reference);
            *factor = S::Norm::absorb::<S, A>(self.head.score, &at, given, raw, row);
        }
    }
}

/// Raises the references of rows marked as level to the loudest of the keys of a block whose similarity is not
/// zero.
pub(super) struct Loudest<'a, 'h, T, S> {
    pub(super) head: &'a Head<'h, T, S>,
    pub(super) queries: Range<usize>,
    pub(super) keys: &'a Range<usize>,
    pub(super) raw: &'a mut [T],
    pub(super) statistics: &'a [RowStatistics<T>],
    pub(super) references: &'a mut [Level],
}

impl<T: Real, S: Score<T>> Task for Loudest<'_, '_, T, S> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let (head, keys) = (self.head, self.keys);
        let Some(exponents) = head.exponents.filter(|_| S::Norm::HAS_FACTORS) else {
            return;
        };
        let rows = self.raw.chunks_exact_mut(keys.len()).zip(self.statistics);
        let rows = self.queries.zip(rows.zip(self.references));
        let rows = rows.filter(|(_, ((_, row), _))| row.level);
        for (i, ((raw, _), reference)) in rows {
            head.score.prepare_row(raw);
            raw.iter_mut().for_each(|x| *x = head.score.score::<A>(*x));
            RowBlock::new(head, i, keys).fill_masked(raw, T::zero());
            let counts = |j: usize| raw[j - keys.start] != T::zero();
            let loudest = match head.bias {
                Some(bias) => exponents.biased_reference(bias.row(i), keys.clone(), counts),
                None => exponents.reference(keys.clone(), counts),
            };
            if loudest.is_above(*reference) {
                *reference = loudest;
            }
        }
    }
}

/// Replaces raw scores by their gradients and the weights' gradients `dp` by the weights after
/// dropout; adds what flows into the exponents.
pub(super) struct PullBack<'a, 'h, T, S> {
    pub(super) head: &'a Head<'h, T, S>,
    pub(super) queries: Range<usize>,
    pub(super) keys: &'a Range<usize>,
    /// The statistics of each query.
    pub(super) statistics: &'a [RowStatistics<T>],
    /// $O_i$ of each query.
    pub(super) output: Mat<'a, T>,
    /// $dO_i$ of each query.
    pub(super) cotangent: Mat<'a, T>,
    pub(super) x: &'a mut [T],
    pub(super) dp: &'a mut [T],
    pub(super) d_keys: &'a mut [T],
    /// Gradients of a bias: of each query, and of all together.
    pub(super) d_bias: (&'a mut [T], &'a mut [T]),
}

impl<T: Real, S: Score<T>> Task for PullBack<'_, '_, T, S> {
    #[inline(always)]
    fn run<A: Arithmetic>(mut self, _: A) {
        let cols = self.keys.len();
        let mut relative = Relative::new(self.head, self.keys);
        let (mut p, mut factors) = (vec![T::zero(); cols], vec![T::one(); cols]);
        let rows = self
            .x
            .chunks_exact_mut(cols)
            .zip(self.dp.chunks_exact_mut(cols));
        for (r, (x, dp)) in rows.enumerate() {
            let (i, row) = (self.queries.start + r, &self.statistics[r]);
            let at = RowBlock::new(self.head, i, self.keys);
            if let Some(dropout) = self.head.dropout {
                dropout.fill(i, self.keys.start, &mut factors);
            }
            let pulled = Pulled {
                factors: &factors,
                delta: dot(self.cotangent.row(r), self.output.row(r)),
                x,
                dp,
                p: &mut p,
            };
            let given = relative.get(self.head, i, self.keys, row.reference);
            S::Norm::pull::<S, A>(self.head.score, &at, given, row, pulled);
            if self.head.exponents.is_some() {
                add(self.d_keys, &p);
            }
            if let Some(bias) = self.head.bias {
                let (each, _) = bias.gradient_sizes();
                let (rows, all) = &mut self.d_bias;
                let row = &mut rows[r * each..][..each];
                bias.row(i).pull_back(self.keys.clone(), &p, row, all);
            }
        }
    }
}
