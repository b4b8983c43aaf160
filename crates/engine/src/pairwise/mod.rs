//! Attention pair by pair, a block at a time: no `[Tq, Tk]` array is ever stored.
//!
//! Queries are taken in blocks, keys in blocks within. The raw scores of a block come from one matrix product; the
//! kernel and the normaliser turn them into unnormalised weights, a few rows at a time, while these are in the first
//! cache; a second product adds the weighted values. The backward pass recomputes the same blocks from the state of
//! each row. Blocks do not depend on the machine, and every sum has a fixed order, so the bits do not depend on the
//! number of threads.
//!
//! One call of the kernel and one of the normaliser serve [`STRIPE`] pairs. The loops here are compiled once for each
//! number type, whatever the kernel.

mod attend;
mod backward;
mod distance;
mod fault;
mod forward;
mod terms;

pub(crate) use attend::{attend, pull_back, weights};
pub(crate) use backward::{Cotangent, GradientRows, HeadGradients};
pub(crate) use fault::fault;
pub(crate) use forward::OutputRows;

use crate::bias::HeadBias;
use crate::call::{HeadAt, Inputs, PairDropout, blocks};
use crate::kernel::{PairKernel, Side, Tile};
use crate::mask::HeadMask;
use crate::normaliser::Normaliser;
use crate::workspace::Workspace;
use crate::{Blocks, Kind, Raw};
use bochner_numerics::{Buffer, Mat, Panels, Real};
use std::ops::Range;

/// Pairs that the kernel and the normaliser are given at a time: as many as the first cache has room for.
const STRIPE: usize = 4096;

/// The operands and the log-weights of one head.
#[derive(Clone, Debug, Default)]
pub(crate) struct Operands<T> {
    /// The operands of queries and of keys; empty where these are the rows themselves.
    pub(crate) left: Buffer<T>,
    pub(crate) right: Buffer<T>,
    pub(crate) key_weights: Option<Buffer<f64>>,
}

impl<T: Real> Operands<T> {
    pub(crate) fn new(kernel: &dyn PairKernel<T>, at: &HeadAt<T>, inputs: &Inputs<T>) -> Self {
        Self {
            left: operands_of(kernel, at, Side::Queries, inputs.q),
            right: operands_of(kernel, at, Side::Keys, inputs.k),
            key_weights: key_weights(at, inputs),
        }
    }

    /// The log-weights of the keys, if they have any.
    pub(crate) fn weights(&self) -> Option<&[f64]> {
        self.key_weights.as_ref().map(|weights| &weights[..])
    }

    /// The operands as matrices.
    pub(crate) fn matrices<'b>(&'b self, inputs: &Inputs<'b, T>) -> [Mat<'b, T>; 2] {
        [(&self.left, inputs.q), (&self.right, inputs.k)].map(|(own, x)| operand(own, x))
    }

    /// The arrays that all blocks read.
    pub(crate) fn packed(
        &self,
        kernel: &dyn PairKernel<T>,
        at: &HeadAt<T>,
        inputs: &Inputs<T>,
    ) -> Packed<T> {
        let [_, right] = self.matrices(inputs);
        Packed::new(kernel, right, at.workspace())
    }

    /// The head in front of the loops.
    pub(crate) fn head<'b>(
        &'b self,
        kernel: &'b dyn PairKernel<T>,
        at: &HeadAt<'b, T>,
        inputs: &Inputs<'b, T>,
        packed: &'b Packed<T>,
    ) -> Head<'b, T> {
        let [left, right] = self.matrices(inputs);
        Head {
            kernel,
            normaliser: at.call.settings.normaliser.as_ref(),
            example: at.example(),
            head: at.head(),
            width: at.call.shape.width,
            first_key: 0,
            left,
            right,
            values: inputs.v,
            key_weights: self.weights(),
            sink: at.sink(),
            bias: at.bias(),
            rows: at.rows(),
            dropout: at.dropout(),
            blocks: at.call.blocks,
            packed,
            workspace: at.workspace(),
        }
    }
}

/// Returns the operands of some rows; none where these are the rows themselves.
pub(crate) fn operands_of<T: Real>(
    kernel: &dyn PairKernel<T>,
    at: &HeadAt<T>,
    side: Side,
    x: Mat<T>,
) -> Buffer<T> {
    let (rows, width) = x.shape();
    let mut operands = at.numbers().empty(rows * kernel.operand_width(width));
    kernel.operands(at.rows_of(side, x), &mut operands);
    operands
}

/// Returns the log-weights of a head's keys, if they have any.
pub(crate) fn key_weights<T: Real>(at: &HeadAt<T>, inputs: &Inputs<T>) -> Option<Buffer<f64>> {
    let weight = at.call.settings.key_weight.as_ref()?;
    let mut all = at.workspace().pool().empty(inputs.k.shape().0);
    weight.log_weights(at.rows_of(Side::Keys, inputs.k), &mut all);
    Some(all)
}

/// Returns operands as a matrix; without any, the rows themselves.
pub(crate) fn operand<'a, T: Real>(operands: &'a [T], x: Mat<'a, T>) -> Mat<'a, T> {
    let rows = x.shape().0;
    match operands.is_empty() {
        true => x,
        false => Mat::new(operands, rows, operands.len() / rows),
    }
}

/// Arrays of a head that all its blocks read.
#[derive(Clone, Debug)]
pub(crate) struct Packed<T> {
    /// The transposed operands of the keys.
    pub(crate) right: Panels<T>,
    /// The transposed values, for the backward pass.
    pub(crate) values: Option<Panels<T>>,
    /// The squared norms of the operands of the keys, if scores are distances.
    pub(crate) norms: Buffer<T>,
    /// The positions of the keys, if the kernel has scores of its own.
    pub(crate) positions: Buffer<T>,
}

impl<T: Real> Default for Packed<T> {
    fn default() -> Self {
        Self {
            right: Panels::default(),
            values: None,
            norms: Buffer::default(),
            positions: Buffer::default(),
        }
    }
}

impl<T: Real> Packed<T> {
    pub(crate) fn new(kernel: &dyn PairKernel<T>, right: Mat<T>, workspace: &Workspace<T>) -> Self {
        let room = |is_there| {
            let keys = if is_there { right.shape().0 } else { 0 };
            workspace.numbers.empty(keys)
        };
        let mut packed = Self {
            right: Panels::new_in(&workspace.numbers, right.t()),
            values: None,
            norms: room(kernel.raw() == Raw::SquaredDistance),
            positions: room(!kernel.scores_are_raw()),
        };
        packed.append_rows(kernel, right, 0);
        packed
    }

    /// Packs the values for the backward pass, too.
    fn with_values(self, values: Mat<T>, workspace: &Workspace<T>) -> Self {
        let values = Some(Panels::new_in(&workspace.numbers, values.t()));
        Self { values, ..self }
    }

    /// Appends more keys, the first of which stands at position `first`.
    pub(crate) fn append(&mut self, kernel: &dyn PairKernel<T>, right: Mat<T>, first: usize) {
        self.right.append(right.t());
        self.append_rows(kernel, right, first);
    }

    fn append_rows(&mut self, kernel: &dyn PairKernel<T>, right: Mat<T>, first: usize) {
        let keys = right.shape().0;
        if kernel.raw() == Raw::SquaredDistance {
            self.norms
                .extend((0..keys).map(|j| crate::lanes::dot(right.row(j), right.row(j))));
        }
        if !kernel.scores_are_raw() {
            self.positions
                .extend((first..first + keys).map(|j| T::of(j as f64)));
        }
    }
}

/// One head of one example.
#[derive(Clone, Copy)]
pub(crate) struct Head<'a, T> {
    pub(crate) kernel: &'a dyn PairKernel<T>,
    pub(crate) normaliser: &'a dyn Normaliser<T>,
    pub(crate) example: usize,
    pub(crate) head: usize,
    /// The width of queries and keys.
    pub(crate) width: usize,
    /// The position of the first key.
    pub(crate) first_key: usize,
    /// Operands of queries, `[Tq, w]`.
    pub(crate) left: Mat<'a, T>,
    /// Operands of keys, `[Tk, w]`, without padding.
    pub(crate) right: Mat<'a, T>,
    /// Values, `[Tk, dv]`, without padding.
    pub(crate) values: Mat<'a, T>,
    pub(crate) key_weights: Option<&'a [f64]>,
    pub(crate) sink: Option<f64>,
    pub(crate) bias: Option<HeadBias<'a, T>>,
    pub(crate) rows: HeadMask<'a>,
    pub(crate) dropout: Option<PairDropout>,
    pub(crate) blocks: Blocks,
    pub(crate) packed: &'a Packed<T>,
    pub(crate) workspace: &'a Workspace<T>,
}

impl<'a, T: Real> Head<'a, T> {
    fn value_width(&self) -> usize {
        self.values.shape().1
    }

    /// The number that hides a pair.
    fn hidden(&self) -> T {
        match self.normaliser.kind() {
            Kind::Logit => T::neg_infinity(),
            Kind::Weight => T::zero(),
        }
    }

    /// The blocks of keys that some queries need.
    fn key_blocks(
        &self,
        queries: &Range<usize>,
    ) -> impl Iterator<Item = Range<usize>> + use<'a, T> {
        let (rows, queries) = (self.rows, queries.clone());
        let keys = blocks(self.seen(&queries), self.blocks.keys);
        keys.filter(move |keys| rows.patterns.is_empty() || !rows.hides(&queries, keys))
    }

    /// The part of a block of keys that some queries see: the whole block, unless rows have windows.
    fn seen_of(&self, queries: &Range<usize>, keys: &Range<usize>) -> Range<usize> {
        let seen = self.seen(queries);
        if seen.end <= keys.start
            || (!self.rows.patterns.is_empty() && self.rows.hides(queries, keys))
        {
            return 0..0;
        }
        match self.rows.mask.has_starts() {
            true => seen.start.max(keys.start)..seen.end.min(keys.end),
            false => keys.clone(),
        }
    }

    /// The keys that some queries see, from the beginning of a panel on.
    pub(crate) fn seen(&self, queries: &Range<usize>) -> Range<usize> {
        if !self.rows.mask.has_starts() {
            // Limits never decrease.
            let last = queries.clone().last();
            return 0..last.map_or(0, |i| self.rows.range(i).end);
        }
        let join = |a: Range<usize>, b: Range<usize>| a.start.min(b.start)..a.end.max(b.end);
        let ranges = queries.clone().map(|i| self.rows.range(i));
        let ranges = ranges.filter(|range| !range.is_empty());
        let seen = ranges.reduce(join).unwrap_or(0..0);
        seen.start - seen.start % Panels::<T>::ALIGNMENT..seen.end
    }

    /// Some queries by some keys, as the kernel is given them.
    fn tile(&self, query: usize, keys: &Range<usize>) -> Tile<'a, T> {
        let position = (query + self.first_key + self.rows.keys) as i64 - self.rows.queries as i64;
        let positions = self.packed.positions.get(keys.clone());
        Tile {
            example: self.example,
            head: self.head,
            width: self.width,
            query: position,
            keys: positions.unwrap_or_default(),
        }
    }
}
