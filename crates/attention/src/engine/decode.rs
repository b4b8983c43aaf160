//! Positions that come after those of earlier calls.

use super::arguments::operand_rows;
use super::attend::Prepared;
use super::cache::{Cache, Following};
use super::linear_time::{self, Sums};
use super::rescaling::{copy_or, divided};
use super::{Arguments, Head, HeadAt, Level, OutputRows, RowStatistics, Rows};
use crate::engine::dispatch::Memory;
use crate::score::{Earlier, PairKernel, Score};
use crate::{Form, Mask, Settings};
use bochner_numerics::memory::overwritten_by;
use bochner_numerics::{Mat, Real, parallel};
use ndarray::{ArrayView2, ArrayView4};
use std::any::Any;
use std::ops::Range;

/// What one head, or all that share it, remember of the positions so far.
#[derive(Clone)]
pub(super) enum HeadMemory<T, S> {
    /// Their keys and values.
    Pairs(Cache<T, S>),
    /// Sums over them, once there are any, and how many there are.
    Sums(Option<Sums<T>>, usize),
}

impl<T: Real, S: Score<T>> HeadMemory<T, S> {
    pub(super) fn new(width: usize, form: Form) -> Self {
        match form {
            Form::LinearTime => Self::Sums(None, 0),
            _ => Self::Pairs(Cache::new(width)),
        }
    }
}

impl<T: Real, S: Score<T>> Memory<T> for HeadMemory<T, S> {
    fn length(&self) -> usize {
        match self {
            Self::Pairs(cache) => cache.forgotten() + cache.length(),
            Self::Sums(_, length) => *length,
        }
    }

    fn first(&self) -> usize {
        match self {
            Self::Pairs(cache) => cache.forgotten(),
            Self::Sums(_, length) => *length,
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Pairs(cache) => cache.size(),
            Self::Sums(sums, _) => sums.as_ref().map_or(0, Sums::size),
        }
    }

    fn truncate(&mut self, length: usize) {
        if let Self::Pairs(cache) = self {
            cache.truncate(length.saturating_sub(cache.forgotten()));
        }
    }

    fn copy(&self) -> Box<dyn Memory<T>> {
        Box::new(self.clone())
    }

    fn copy_from(&mut self, other: &dyn Memory<T>) {
        let other: &dyn Any = other;
        match (self, other.downcast_ref().expect("of the same kernel")) {
            (Self::Sums(Some(own), length), Self::Sums(Some(sums), others)) => {
                own.copy_from(sums);
                *length = *others;
            }
            (own, other) => own.clone_from(other),
        }
    }

    #[cfg(feature = "dfdx")]
    fn can_branch(&self) -> bool {
        matches!(self, Self::Pairs(_))
    }

    #[cfg(feature = "dfdx")]
    fn keep(&mut self, marks: &[bool]) {
        if let Self::Pairs(cache) = self {
            cache.keep(marks);
        }
    }
}

/// Remembers the positions of some heads, which share them, that are not padding; with an output `[n, dv]` of each
/// head, attends from them to all so far, and writes zeros for the others. Without causality there are no positions to
/// remember, and all queries attend to those so far.
pub(super) fn decode<T: Real, K: PairKernel<T>>(
    kernel: &K,
    call: &Arguments<T>,
    heads: Range<usize>,
    memory: &mut HeadMemory<T, K::Score>,
    mut output: Option<&mut [T]>,
) {
    let at = call.at(heads.start);
    let (added, queries) = (at.kept(), queries(&at));
    let visible = memory.length() + added > 0;
    let attending = usize::from(visible) * queries * call.value_width;
    let size = call.queries * call.value_width;
    if let Some(output) = &mut output {
        let heads = output.chunks_exact_mut(size);
        heads.for_each(|head| head[attending..].fill(T::zero()));
    }
    if queries == 0 || !visible {
        return;
    }
    match memory {
        HeadMemory::Pairs(cache) => decode_pairs(kernel, call, heads, cache, output),
        HeadMemory::Sums(sums, length) => {
            *length += added;
            let output = output.map(|output| &mut output[..attending]);
            linear_time::decode(kernel, &at, sums, output);
        }
    }
}

/// The number of queries that attend to what there is.
pub(super) fn queries<T: Real>(at: &HeadAt<T>) -> usize {
    match at.rows().mask.is_causal() {
        true => at.kept(),
        false => at.queries().shape().0,
    }
}

fn decode_pairs<T: Real, K: PairKernel<T>>(
    kernel: &K,
    call: &Arguments<T>,
    heads: Range<usize>,
    cache: &mut Cache<T, K::Score>,
    output: Option<&mut [T]>,
) {
    let first = call.at(heads.start);
    let (added, count) = (first.kept(), queries(&first));
    let mask = first.rows().mask.without_lengths();
    let positions = cache.length() + added;
    let score = |at: &HeadAt<T>| {
        let earlier = Earlier {
            keys: cache.keys(),
            largest: cache.largest(),
            rows: last_rows(at, &mask, count, positions),
        };
        kernel.score_after(at, &earlier)
    };
    let prepared = Prepared::new(kernel, &first, score(&first));
    // The other heads' queries, before their keys join those that a score looks at.
    let mut others = call.workspace.pool().empty(heads.len() - 1);
    if output.is_some() {
        let prepare = |i| {
            let at = call.at(heads.start + 1 + i);
            Prepared::of_queries(kernel, &at, score(&at))
        };
        parallel::map_into(heads.len() - 1, prepare, &mut others);
    }
    if added > 0 {
        let (_, right) = prepared.operands(kernel, &first);
        cache.append(Following {
            keys: K::KEEPS_KEYS.then_some(right),
            right,
            values: first.values(),
            score: &prepared.score,
            exponents: prepared.exponents.as_ref(),
            values_are_finite: prepared.finite.values,
        });
    }
    if let Some(output) = output {
        let (cache, size) = (&*cache, call.queries * call.value_width);
        parallel::for_each_piece(
            output,
            heads.len(),
            |output, i, next| output.split_at_mut((next - i) * size),
            |i, output| {
                let at = call.at(heads.start + i);
                let prepared = i.checked_sub(1).map_or(&prepared, |i| &others[i]);
                let rows = last_rows(&at, &mask, count, positions);
                let output = &mut output[..count * call.value_width];
                attend_to(kernel, &at, (prepared, rows), cache, output);
            },
        );
    }
    cache.forget_first(first_seen(&mask, cache.length()));
}

/// Attention from a head's last positions, which the cache holds already.
fn attend_to<T: Real, K: PairKernel<T>>(
    kernel: &K,
    at: &HeadAt<T>,
    (prepared, rows): (&Prepared<T, K::Score>, Rows),
    cache: &Cache<T, K::Score>,
    output: &mut [T],
) {
    let queries = at.queries().row_range(0..rows.queries);
    if kernel.overflows(queries, cache.largest()) {
        return attend_anew(kernel, at, queries, cache, output);
    }
    let width = kernel.operand_width(at.width());
    let left = operand_rows(&prepared.left, at.queries(), width).row_range(0..rows.queries);
    let bias = at.bias().map(|bias| bias.with_rows(rows));
    let unit = at.unit_of_values(cache.largest_value(), cache.length(), width);
    let head = cache.head(left, rows, bias, at.arguments.blocks, unit, at.workspace());
    attend_from(head, output);
}

/// The first of `length` positions that the next one sees; no later one sees those before it.
pub(crate) fn first_seen(mask: &Mask, length: usize) -> usize {
    mask.row_range(0, 0, 1, length + 1).start
}

/// Attention from the last positions in units that suit all keys.
fn attend_anew<T: Real, K: PairKernel<T>>(
    kernel: &K,
    at: &HeadAt<T>,
    queries: Mat<T>,
    cache: &Cache<T, K::Score>,
    output: &mut [T],
) {
    let mask = at.rows().mask.without_lengths();
    let sizes = (queries.shape().0, cache.length());
    let mask = match at.paths() {
        Some(seen) => mask.with_matrix(ArrayView2::from_shape(sizes, seen).expect("a row a query")),
        None => mask,
    };
    let settings = Settings {
        mask,
        bias: (at.arguments.settings.bias.as_ref())
            .map(|bias| bias.of_head(at.head(), at.arguments.heads)),
        ..at.arguments.settings.clone()
    };
    let (q, k, v) = (array(queries), array(cache.keys()), array(cache.values()));
    let call = Arguments::new(q, k, v, &settings, at.workspace());
    let call = call.expect("checked position by position");
    let at = call.at(0);
    let prepared = Prepared::new(kernel, &at, kernel.score(&at));
    let head = prepared.head(kernel, &at, at.values());
    let packed = head.pack();
    attend_from(head.with(&packed), output);
}

/// The last positions of a sequence as its rows, under a mask without lengths.
pub(super) fn last_rows<'m, T: Real>(
    at: &HeadAt<'m, T>,
    mask: &'m Mask,
    queries: usize,
    keys: usize,
) -> Rows<'m> {
    Rows {
        mask,
        example: 0,
        head: at.head(),
        queries,
        keys,
        seen: at.paths(),
    }
}

/// Attention from all queries of a head.
fn attend_from<T: Real, S: Score<T>>(head: Head<T, S>, output: &mut [T]) {
    let values = divided(head.values, head.unit, &head.workspace.numbers);
    let head = Head {
        values: copy_or(&values, head.values),
        ..head
    };
    let none = RowStatistics::new(Level::NONE);
    let mut statistics = head.workspace.pool().filled(head.rows.queries, none);
    let statistics = &mut statistics;
    overwritten_by(output, |output| {
        head.forward(0, OutputRows { output, statistics });
    });
}

/// A matrix as the only head of the only example.
fn array<T: Real>(x: Mat<'_, T>) -> ArrayView4<'_, T> {
    let (rows, width) = x.shape();
    ArrayView4::from_shape((1, 1, rows, width), x.data()).expect("row-major")
}
