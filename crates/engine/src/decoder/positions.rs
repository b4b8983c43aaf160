//! Keys and values of the positions so far.

use super::FirstFault;
use crate::call::{Call, HeadAt, Inputs};
use crate::kernel::{PairKernel, Side};
use crate::normaliser::Row;
use crate::pairwise::{Head, OutputRows, Packed, key_weights, operand, operands_of};
use crate::{Error, Mask, Raw};
use bochner_numerics::lists::{keep_marked, remove_first};
use bochner_numerics::memory::overwritten_by;
use bochner_numerics::{Mat, Panels, Real, parallel};
use std::ops::Range;

/// Keys and values of a sequence that grows.
///
/// Keys lie packed as the right factor of the scores' product; everything grows in place.
#[derive(Clone, Debug, Default)]
pub(super) struct Positions<T: Real> {
    packed: Packed<T>,
    /// Rows of operands, where scores are distances.
    rows: Vec<T>,
    values: Vec<T>,
    key_weights: Option<Vec<f64>>,
    /// The number of positions before those that are held.
    pub(super) dropped: usize,
    /// The number of positions that are held.
    pub(super) length: usize,
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
    pub(super) fn drop_first(&mut self, unseen: usize) {
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
    pub(super) fn truncate(&mut self, length: usize) {
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
    pub(super) fn keep(&mut self, marks: &[bool]) {
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
    pub(super) fn size(&self) -> usize {
        let (rows, columns) = self.packed.right.shape();
        let weights = self.key_weights.as_ref().map_or(0, Vec::len);
        rows * columns + self.rows.len() + self.values.len() + self.packed.norms.len() + weights
    }

    /// Adds the positions of some heads, which share the cache, that are not padding; with outputs `[n, dv]` of their
    /// queries, one after the other, attends from these to all so far.
    pub(super) fn decode(
        &mut self,
        kernel: &dyn PairKernel<T>,
        (call, heads, inputs): (&Call<T>, Range<usize>, &Inputs<T>),
        output: Option<&mut [T]>,
    ) -> Result<(), Error> {
        let first = call.at(heads.start);
        if inputs.k.shape().0 > 0 {
            let right = operands_of(kernel, &first, Side::Keys, inputs.k);
            let weights = key_weights(&first, inputs);
            let right = operand(&right, inputs.k);
            self.append(
                kernel,
                right,
                inputs.v,
                weights.as_ref().map(|all| &all[..]),
            );
        }
        let Some(output) = output else { return Ok(()) };
        let mask = call.settings.mask.without_lengths();
        let size = inputs.q.shape().0 * call.shape.value_width;
        let stride = call.shape.queries * call.shape.value_width;
        let (cache, fault) = (&*self, FirstFault::default());
        parallel::for_each_piece(
            output,
            heads.len(),
            |output, i, next| output.split_at_mut((next - i) * stride),
            |i, output| {
                let (at, output) = (call.at(heads.start + i), &mut output[..size]);
                let queries = at.queries().row_range(0..inputs.q.shape().0);
                fault.note(i, cache.attend(kernel, &at, &mask, queries, output));
            },
        );
        fault.result()
    }

    /// Attends from a head's last positions, which the cache holds already.
    fn attend(
        &self,
        kernel: &dyn PairKernel<T>,
        at: &HeadAt<T>,
        mask: &Mask,
        x: Mat<T>,
        output: &mut [T],
    ) -> Result<(), Error> {
        let queries = x.shape().0;
        let seen = at.seen_by_rule(mask, queries, (self.dropped, self.length));
        let rows = at.last_rows(mask, queries, self.length, seen.as_ref());
        let left = operands_of(kernel, at, Side::Queries, x);
        let left = operand(&left, x);
        let right = match self.rows.is_empty() {
            true => Mat::new(&[], 0, left.shape().1),
            false => Mat::new(&self.rows, self.length, left.shape().1),
        };
        let head = Head {
            kernel,
            normaliser: at.call.settings.normaliser.as_ref(),
            example: at.example(),
            head: at.head(),
            width: at.call.shape.width,
            first_key: self.dropped,
            left,
            right,
            values: Mat::new(&self.values, self.length, at.call.shape.value_width),
            key_weights: self.key_weights.as_deref(),
            sink: at.sink(),
            bias: at.bias().map(|bias| bias.with_rows(rows)),
            rows,
            dropout: None,
            blocks: at.call.blocks,
            packed: &self.packed,
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
}
