//! Positions that come after those of earlier calls.

use super::attend::Prepared;
use super::cache::{Cache, Following};
use super::linear_time::{self, Sums};
use super::rescaling::{copy_or, divided};
use super::{Arguments, Head, HeadAt, Level, OutputRows, RowStatistics, Rows};
use crate::engine::face::Memory;
use crate::score::{Earlier, PairKernel, Score};
use crate::{Form, Mask, Settings};
use bochner_numerics::memory::overwritten_by;
use bochner_numerics::{Mat, Real};
use ndarray::ArrayView4;

/// What one head remembers of the positions so far.
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
}

/// Remembers the positions of a head that are not padding; with an output `[n, dv]`, attends from them
/// to all so far, and writes zeros for the others. Without causality there are no positions to remember,
/// and all queries attend to those so far.
pub(super) fn decode<T: Real, K: PairKernel<T>>(
    kernel: &K,
    at: HeadAt<T>,
    memory: &mut HeadMemory<T, K::Score>,
    output: Option<&mut [T]>,
) {
    let (added, queries) = (at.kept(), queries(&at));
    let visible = memory.length() + added > 0;
    let output = output.map(|output| {
        let attending = if visible { queries } else { 0 };
        let (attended, blind) = output.split_at_mut(attending * at.arguments.value_width);
        blind.fill(T::zero());
        attended
    });
    if queries == 0 || !visible {
        return;
    }
    match memory {
        HeadMemory::Pairs(cache) => decode_pairs(kernel, &at, cache, output),
        HeadMemory::Sums(sums, length) => {
            *length += added;
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
    at: &HeadAt<T>,
    cache: &mut Cache<T, K::Score>,
    output: Option<&mut [T]>,
) {
    let (added, count) = (at.kept(), queries(at));
    let (mask, blocks) = (at.rows().mask.without_lengths(), at.arguments.blocks);
    let rows = last_rows(at, &mask, count, cache.length() + added);
    let earlier = Earlier {
        keys: cache.keys(),
        largest: cache.largest(),
        rows,
    };
    let score = kernel.score_after(at, &earlier);
    let prepared = Prepared::new(kernel, at, score);
    let (left, right) = prepared.operands(kernel, at);
    if added > 0 {
        cache.append(Following {
            keys: K::KEEPS_KEYS.then_some(right),
            right,
            values: at.values(),
            score: &prepared.score,
            exponents: prepared.exponents.as_ref(),
            finite: prepared.finite,
        });
    }
    if let Some(output) = output {
        let queries = at.queries().row_range(0..count);
        if kernel.overflows(queries, cache.largest()) {
            attend_anew(kernel, at, queries, cache, output);
        } else {
            let (left, width) = (left.row_range(0..count), kernel.operand_width(at.width()));
            let bias = at.bias().map(|bias| bias.with_rows(rows));
            let unit = at.unit_of_values(cache.largest_value(), cache.length(), width);
            let mut head = cache.head(left, rows, bias, blocks, unit, at.workspace());
            head.finite.left &= prepared.finite.left;
            attend_from(head, output);
        }
    }
    cache.forget_first(first_seen(&mask, cache.length()));
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
    let settings = Settings {
        mask: at.rows().mask.without_lengths(),
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
    at: &HeadAt<T>,
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
