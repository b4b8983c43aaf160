//! The key-value cache of one head of keys.

use super::step::FirstFault;
use crate::call::{Call, HeadAt, Inputs};
use crate::kernel::{PairKernel, Side};
use crate::linear::squares::Sums;
use crate::mask::HeadMask;
use crate::normaliser::Row;
use crate::pairwise::{Head, OutputRows, Packed};
use crate::{Error, Mask, Raw};
use bochner_numerics::lists::{keep_marked, remove_first};
use bochner_numerics::memory::overwritten_by;
use bochner_numerics::{Buffer, Mat, Panels, Real, parallel};
use std::ops::Range;

/// The positions so far of a head whose weights are scores of pairs.
#[derive(Clone, Debug)]
pub(crate) enum PairsCache<T: Real> {
    /// Their keys and values.
    Positions(Positions<T>),
    /// Sums over them, once there are any, and how many there are.
    Sums(Option<Sums<T>>, usize),
}

/// Keys and values of a sequence that grows.
///
/// Keys lie packed as the right factor of the scores' product; everything grows in place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Positions<T: Real> {
    packed: Packed<T>,
    /// Rows of operands, where scores are distances.
    rows: Vec<T>,
    values: Vec<T>,
    key_weights: Option<Vec<f64>>,
    /// The number of positions before those that are held.
    dropped: usize,
    /// The number of positions that are held.
    length: usize,
}

impl<T: Real> Positions<T> {
    fn append(
        &mut self,
        kernel: &dyn PairKernel<T>,
        right: Mat<T>,
        values: Mat<T>,
        key_weights: Option<&[f64]>,
    ) {
        self.packed
            .append(kernel, right, self.dropped + self.length);
        if kernel.raw() == Raw::SquaredDistance {
            self.rows.extend_from_slice(right.data());
        }
        self.values.extend_from_slice(values.data());
        if let Some(more) = key_weights {
            self.key_weights
                .get_or_insert_default()
                .extend_from_slice(more);
        }
        self.length += right.shape().0;
    }

    /// The lists that hold numbers for each position.
    fn lists(&mut self) -> [&mut Vec<T>; 4] {
        let Packed {
            norms, positions, ..
        } = &mut self.packed;
        [norms, positions, &mut self.rows, &mut self.values]
    }

    /// Drops the first of the positions that are held, `unseen` of which no later position sees, once they are
    /// enough to pay for moving the others.
    ///
    /// Between calls the cache holds at most a quarter more positions than are seen, or a panel more where that is
    /// more; memory that a call of many positions has left is given back.
    fn drop_first(&mut self, unseen: usize) {
        let (panel, seen) = (Panels::<T>::ALIGNMENT, self.length - unseen);
        let spare = (seen / 4).max(panel);
        if unseen < spare {
            return;
        }
        // Keys that stay begin a panel, as they did.
        let (gone, most) = (unseen - unseen % panel, seen + spare);
        let length = self.length;
        for list in self.lists() {
            let width = list.len() / length;
            remove_first(list, gone * width, most * width);
        }
        self.packed.right.remove_first(gone, most);
        if let Some(weights) = &mut self.key_weights {
            remove_first(weights, gone, most);
        }
        self.dropped += gone;
        self.length -= gone;
    }

    /// Drops all positions but the first ones of those that are held.
    fn truncate(&mut self, length: usize) {
        if length >= self.length {
            return;
        }
        let before = self.length;
        for list in self.lists() {
            list.truncate(list.len() / before * length);
        }
        self.packed.right.truncate(length);
        if let Some(weights) = &mut self.key_weights {
            weights.truncate(length);
        }
        self.length = length;
    }

    /// Drops the positions whose mark is `false`.
    fn keep(&mut self, marks: &[bool]) {
        self.lists()
            .into_iter()
            .for_each(|list| keep_marked(list, marks));
        self.packed.right.keep(marks);
        if let Some(weights) = &mut self.key_weights {
            keep_marked(weights, marks);
        }
        self.length = marks.iter().filter(|&&kept| kept).count();
    }

    /// The number of numbers.
    fn size(&self) -> usize {
        let (rows, columns) = self.packed.right.shape();
        let weights = self.key_weights.as_ref().map_or(0, Vec::len);
        rows * columns + self.rows.len() + self.values.len() + self.packed.norms.len() + weights
    }
}

impl<T: Real> PairsCache<T> {
    /// The number of positions.
    pub(crate) fn length(&self) -> usize {
        match self {
            Self::Positions(cache) => cache.dropped + cache.length,
            Self::Sums(_, length) => *length,
        }
    }

    /// The first position that is held by itself.
    pub(crate) fn first(&self) -> usize {
        match self {
            Self::Positions(cache) => cache.dropped,
            Self::Sums(_, length) => *length,
        }
    }

    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Positions(cache) => cache.size(),
            Self::Sums(sums, _) => sums.as_ref().map_or(0, Sums::size),
        }
    }

    pub(crate) fn truncate(&mut self, length: usize) {
        if let Self::Positions(cache) = self {
            cache.truncate(length.saturating_sub(cache.dropped));
        }
    }

    pub(crate) fn copy_from(&mut self, other: &Self) {
        match (self, other) {
            (Self::Sums(Some(own), length), Self::Sums(Some(sums), others)) => {
                own.copy_from(sums);
                *length = *others;
            }
            (own, other) => own.clone_from(other),
        }
    }

    pub(crate) fn can_branch(&self) -> bool {
        matches!(self, Self::Positions(_))
    }

    pub(crate) fn keep(&mut self, marks: &[bool]) {
        if let Self::Positions(cache) = self {
            cache.keep(marks);
        }
    }
}

/// Adds the positions of some heads, which share a cache, that are not padding; with outputs `[n, dv]` of their
/// `queries`, one after the other, attends from these to all so far.
pub(super) fn decode<T: Real>(
    kernel: &dyn PairKernel<T>,
    (call, heads, inputs, queries): (&Call<T>, Range<usize>, &Inputs<T>, usize),
    cache: &mut Positions<T>,
    output: Option<&mut [T]>,
) -> Result<(), Error> {
    let first = call.at(heads.start);
    let (added, width) = inputs.k.shape();
    let operand_width = kernel.operand_width(width);
    if added > 0 {
        let (numbers, pool) = (first.numbers(), first.workspace().pool());
        let (mut right, mut weights) = (numbers.empty(added * operand_width), pool.empty(added));
        kernel.operands(first.rows_of(Side::Keys, inputs.k), &mut right);
        let weight = call.settings.key_weight.as_ref();
        let key_weights = weight.map(|weight| {
            weight.log_weights(first.rows_of(Side::Keys, inputs.k), &mut weights);
            &weights[..]
        });
        cache.append(
            kernel,
            crate::pairwise::operand(&right, inputs.k),
            inputs.v,
            key_weights,
        );
    }
    let mask = call.settings.mask.without_lengths();
    let mut result = Ok(());
    if let Some(output) = output {
        let (cache, size) = (&*cache, queries * call.shape.value_width);
        let stride = call.shape.queries * call.shape.value_width;
        let fault = FirstFault::default();
        parallel::for_each_piece(
            output,
            heads.len(),
            |output, i, next| output.split_at_mut((next - i) * stride),
            |i, output| {
                let at = call.at(heads.start + i);
                fault.note(
                    i,
                    attend_from(kernel, &at, (&mask, queries), cache, &mut output[..size]),
                );
            },
        );
        result = fault.result();
    }
    cache.drop_first(first_seen(&mask, cache.length));
    result
}

/// Attends from a head's last positions, which the cache holds already.
fn attend_from<T: Real>(
    kernel: &dyn PairKernel<T>,
    at: &HeadAt<T>,
    (mask, queries): (&Mask, usize),
    cache: &Positions<T>,
    output: &mut [T],
) -> Result<(), Error> {
    let seen = seen_by_rule(at, mask, queries, cache.dropped, cache.length);
    let rows = last_rows(
        at,
        mask,
        queries,
        cache.length,
        seen.as_ref().map(|seen| &seen[..]),
    );
    let x = at.queries().row_range(0..queries);
    let mut left = at
        .numbers()
        .empty(queries * kernel.operand_width(at.call.shape.width));
    kernel.operands(at.rows_of(Side::Queries, x), &mut left);
    let left = crate::pairwise::operand(&left, x);
    let (width, value_width) = (left.shape().1, at.call.shape.value_width);
    let right = match cache.rows.is_empty() {
        true => Mat::new(&[], 0, width),
        false => Mat::new(&cache.rows, cache.length, width),
    };
    let head = Head {
        kernel,
        normaliser: at.call.settings.normaliser.as_ref(),
        example: at.example(),
        head: at.head(),
        width: at.call.shape.width,
        first_key: cache.dropped,
        left,
        right,
        values: Mat::new(&cache.values, cache.length, value_width),
        key_weights: cache.key_weights.as_deref(),
        sink: at.sink(),
        bias: at.bias().map(|bias| bias.with_rows(rows)),
        rows,
        dropout: None,
        blocks: at.call.blocks,
        packed: &cache.packed,
        workspace: at.workspace(),
    };
    let mut states = at.workspace().pool().filled(queries, Row::new(0.0));
    let rows = &mut states[..];
    match overwritten_by(output, |output| {
        head.forward(0, OutputRows { output, rows })
    }) {
        Some(row) => Err(head.fault(row)),
        None => Ok(()),
    }
}

/// The first of `length` positions that the next one sees; no later one sees those before it.
pub(crate) fn first_seen(mask: &Mask, length: usize) -> usize {
    mask.row_range(0, 0, 1, length + 1).start
}

/// The pairs that a function of positions keeps, of the last queries and all keys that are held.
pub(crate) fn seen_by_rule<T: Real>(
    at: &HeadAt<T>,
    mask: &Mask,
    queries: usize,
    dropped: usize,
    length: usize,
) -> Option<Buffer<bool>> {
    let rule = mask.pairs()?;
    let mut seen = at.workspace().pool().empty(queries * length);
    for i in 0..queries {
        let query = (dropped + length + i) as i64 - queries as i64;
        seen.extend((0..length).map(|j| rule.keeps(query, (dropped + j) as i64)));
    }
    Some(seen)
}

/// The last positions of a sequence as rows, under a mask without lengths.
pub(crate) fn last_rows<'m, T: Real>(
    at: &HeadAt<'m, T>,
    mask: &'m Mask,
    queries: usize,
    keys: usize,
    seen: Option<&'m [bool]>,
) -> HeadMask<'m> {
    let seen = at.paths().or(seen);
    HeadMask {
        mask,
        example: 0,
        head: at.head(),
        queries,
        keys,
        patterns: &[],
        seen,
    }
}
