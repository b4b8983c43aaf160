//! Blocked attention of one head: no `[Tq, Tk]` array is ever stored.
//!
//! Queries are taken in blocks, keys in blocks within; the raw scores of a block come from one
//! matrix product, or from bits where all numbers are -1, 0 and 1; a sweep over each row turns them
//! into unnormalised weights relative to the row's reference exponent, and a second product adds
//! the weighted values. The backward pass recomputes the same blocks from the row statistics. Blocks do not depend on the machine, and
//! every sum has a fixed order, so the bits do not depend on the number of threads.

mod arguments;
mod attend;
mod backward;
mod cache;
mod decode;
mod dispatch;
mod distance;
mod exponents;
mod forward;
mod lanes;
mod linear_time;
mod output;
mod product;
mod pull_back;
mod random_features;
mod rescaling;
mod row_major;
mod scan;
mod sweep;
mod ternary;
mod with_weights;

pub(crate) use arguments::{
    Arguments, HEADS_OF_K, HeadAt, Paths, over_readers, shared_heads, slab,
};
#[cfg(feature = "dfdx")]
pub(crate) use cache::keep_marked;
pub(crate) use decode::first_seen;
pub(crate) use dispatch::{Attend, Memory, State, Tiled};
pub(crate) use exponents::{Exponents, Level};
pub(crate) use lanes::{add, dot, map_and_sum, max, max_of, sum, total};
pub(crate) use linear_time::{FiniteRank, NoRank, Squares, linear_time_state};
pub(crate) use output::OutputRows;
pub(crate) use random_features::RandomFeatures;
pub use random_features::Trained;
pub(crate) use rescaling::{
    copy_or, divided, fill_multiplied, log2_largest, multiply_finite, without_masked,
};
pub(crate) use row_major::{RowMajor, write_row_major};
pub(crate) use sweep::RowBlock;
pub(crate) use ternary::TernaryRows;

use crate::bias::HeadBias;
use crate::normaliser::Normaliser;
use crate::score::{PairKernel, Score};
use crate::{Blocks, Mask, Workspace};
use bochner_numerics::elementary::max_norm;
use bochner_numerics::{Buffer, DropoutMask, Mat, Panels, Real};
use std::ops::Range;

/// One head of one example.
pub(crate) struct Head<'a, T, S> {
    /// Queries or their features, `[Tq, w]`.
    pub(crate) left: Mat<'a, T>,
    /// Keys or their features, `[Tk, w]`, padding cut off.
    pub(crate) right: Mat<'a, T>,
    /// The bits of these queries and keys, if their numbers are ternary.
    ternary: Option<&'a [TernaryRows; 2]>,
    /// Values, `[Tk, dv]`, padding cut off.
    pub(crate) values: Mat<'a, T>,
    pub(crate) score: &'a S,
    /// What keys add to their weights beside the score.
    pub(crate) exponents: Option<&'a Exponents>,
    /// What is added to logits beside that.
    pub(crate) bias: Option<HeadBias<'a, T>>,
    pub(crate) rows: Rows<'a>,
    pub(crate) dropout: Option<PairDropout>,
    pub(crate) finite: Finite,
    pub(crate) blocks: Blocks,
    /// The power of two by which values were divided.
    pub(crate) unit: i32,
    pub(crate) packed: &'a Packed<T>,
    pub(crate) workspace: &'a Workspace<T>,
}

/// What all blocks of a head read, and none should make again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packed<T> {
    /// The transposed keys or features.
    right: Option<Panels<T>>,
    /// The transposed values, for the backward pass.
    values: Option<Panels<T>>,
    /// What keys add to or multiply raw scores with, relative to the loudest of them.
    relative: Option<(Level, Buffer<T>)>,
}

impl<T: Real> Packed<T> {
    /// Nothing packed.
    pub(crate) const NONE: &'static Self = &Self {
        right: None,
        values: None,
        relative: None,
    };
}

/// Dropout on the pairs of one head.
///
/// The mask is one of the whole `[B, M, Tq, Tk]` array, so that it depends neither on the blocks
/// nor on the mask.
#[derive(Clone, Copy)]
pub(crate) struct PairDropout {
    pub(crate) mask: DropoutMask,
    /// The index of the head's first pair.
    pub(crate) base: u64,
    /// Tk, padding included.
    pub(crate) keys: usize,
}

impl PairDropout {
    /// The factors of row `i` from key `j` on.
    #[inline]
    fn fill<T: Real>(&self, i: usize, j: usize, factors: &mut [T]) {
        self.mask.factors(self.index(i, j), factors);
    }

    /// Multiplies numbers of row `i` from key `j` on by their factors.
    fn scale<T: Real>(&self, i: usize, j: usize, values: &mut [T]) {
        self.mask.scale(self.index(i, j), values);
    }

    fn index(&self, i: usize, j: usize) -> u64 {
        self.base + (i * self.keys + j) as u64
    }
}

/// Which of a head's operands hold only finite numbers.
///
/// NaN behind a mask must not reach a kept row through `0 * NaN` inside a matrix product; such
/// products then skip the zeros one by one.
#[derive(Clone, Copy, Default)]
pub(crate) struct Finite {
    pub(crate) left: bool,
    pub(crate) right: bool,
    pub(crate) values: bool,
}

impl Finite {
    fn of<T: Real, K: PairKernel<T>>(
        kernel: &K,
        left: Mat<T>,
        right: Mat<T>,
        values: Mat<T>,
    ) -> Self {
        Self {
            left: kernel.is_finite(left),
            right: kernel.is_finite(right),
            values: max_norm(values.data()).is_finite(),
        }
    }
}

/// The mask as the rows of one example see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'a> {
    pub(crate) mask: &'a Mask,
    pub(crate) example: usize,
    pub(crate) head: usize,
    pub(crate) queries: usize,
    pub(crate) keys: usize,
    /// Which keys each query sees, `[queries, keys]`, where the mask has no matrix of its own.
    pub(crate) seen: Option<&'a [bool]>,
}

impl<'a> Rows<'a> {
    /// The keys that are kept, as far as the matrix lets them.
    pub(crate) fn range(&self, i: usize) -> Range<usize> {
        self.mask
            .row_range(self.example, i, self.queries, self.keys)
    }

    /// Keys before this one are kept, if all before it are.
    pub(crate) fn limit(&self, i: usize) -> usize {
        self.range(i).end
    }

    pub(crate) fn matrix(&self, i: usize) -> Option<&'a [bool]> {
        match self.seen {
            Some(seen) => Some(&seen[i * self.keys..][..self.keys]),
            None => self.mask.matrix_row(self.example, self.head, i),
        }
    }

    /// The number of queries that are not padding, as far as it is known: as many queries as keys are one sequence.
    /// The numbers of a sequence must not depend on how far it is padded.
    pub(crate) fn counting(&self) -> usize {
        match self.mask.query_limit(self.example) {
            Some(limit) => limit,
            None if self.queries == self.keys => self.mask.key_limit(self.example, self.keys),
            None => self.queries,
        }
    }

    /// Whether every row keeps all keys before its limit, and limits never decrease.
    pub(crate) fn keep_prefixes(&self) -> bool {
        !self.mask.has_starts() && self.matrix(0).is_none()
    }

    /// Whether row `i` keeps any key.
    fn keeps_any(&self, i: usize) -> bool {
        let range = self.range(i);
        self.matrix(i)
            .map_or(!range.is_empty(), |row| row[range].contains(&true))
    }
}

/// What the backward pass needs of one row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowStatistics<T> {
    /// The natural exponent that the row's weights are relative to.
    pub(crate) reference: Level,
    /// The largest score beside it so far, in the units of raw scores, which [`Score::scale`] makes exponents of;
    /// unused without an exponential.
    ///
    /// [`Score::scale`]: crate::score::Score::scale
    pub(crate) largest: T,
    /// The sum of the weights relative to both; zero if no key is kept. [`Normaliser::finish`] makes it what the
    /// row is divided by.
    pub(crate) normaliser: T,
    /// What the row's weights sum to once they are divided: 1 unless [`Normaliser::finish`] says otherwise.
    pub(crate) total: T,
    /// All kept similarities vanish: the weights are those of the magnitudes alone.
    pub(crate) level: bool,
}

impl<T: Real> RowStatistics<T> {
    /// The statistics of a row that has met no key.
    pub(crate) fn new(reference: Level) -> Self {
        Self {
            reference,
            largest: T::neg_infinity(),
            normaliser: T::zero(),
            total: T::one(),
            level: false,
        }
    }
}

impl<'a, T: Real, S: Score<T>> Head<'a, T, S> {
    /// Packs what the forward pass reads again and again.
    pub(crate) fn pack(&self) -> Packed<T> {
        let numbers = &self.workspace.numbers;
        let shared = self.exponents.filter(|_| self.bias.is_none());
        let relative = shared.map(|exponents| {
            let (keys, reference) = (self.right.shape().0, exponents.largest_from(0));
            let mut all = numbers.empty(keys);
            S::Norm::relative(self.score, exponents, None, 0..keys, reference, &mut all);
            (reference, all)
        });
        let is_product = S::RAW.is_product() && self.ternary.is_none();
        Packed {
            right: is_product.then(|| Panels::new_in(numbers, self.right.t())),
            values: None,
            relative,
        }
    }

    /// Packs what the backward pass reads besides.
    pub(crate) fn pack_for_backward(&self) -> Packed<T> {
        Packed {
            values: Some(Panels::new_in(&self.workspace.numbers, self.values.t())),
            ..self.pack()
        }
    }

    /// The head with what has been packed.
    pub(crate) fn with(self, packed: &'a Packed<T>) -> Self {
        Self { packed, ..self }
    }

    fn width(&self) -> usize {
        self.left.shape().1
    }

    fn value_width(&self) -> usize {
        self.values.shape().1
    }

    /// The key blocks that some queries need.
    fn key_blocks(&self, queries: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<T, S> {
        blocks(self.seen(queries), self.blocks.keys)
    }

    /// What some queries see of a block of keys: the whole block, unless rows keep windows.
    fn seen_of(&self, queries: &Range<usize>, keys: &Range<usize>) -> Range<usize> {
        let seen = self.seen(queries);
        if seen.end <= keys.start {
            return 0..0;
        }
        match self.rows.mask.has_starts() {
            true => seen.start.max(keys.start)..seen.end.min(keys.end),
            false => keys.clone(),
        }
    }

    /// The keys that some queries see, from the beginning of a panel on.
    fn seen(&self, queries: &Range<usize>) -> Range<usize> {
        if !self.rows.mask.has_starts() {
            // Limits never decrease.
            let last = queries.clone().last();
            return 0..last.map_or(0, |i| self.rows.limit(i));
        }
        let join = |a: Range<usize>, b: Range<usize>| a.start.min(b.start)..a.end.max(b.end);
        let ranges = queries.clone().map(|i| self.rows.range(i));
        let ranges = ranges.filter(|range| !range.is_empty());
        let seen = ranges.reduce(join).unwrap_or(0..0);
        seen.start - seen.start % Panels::<T>::ALIGNMENT..seen.end
    }
}

/// `range` in consecutive pieces of at most `size`.
pub(crate) fn blocks(range: Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range
        .step_by(size)
        .map(move |start| start..start.saturating_add(size).min(end))
}
