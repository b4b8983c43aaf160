//! The order in which blocks of keys are summed up and read.

use super::squares::Order;
use crate::Workspace;
use crate::engine::{Exponents, Level, Rows, blocks};
use bochner_numerics::{Buffer, Real};
use std::ops::Range;

/// Positions of a block.
pub(in crate::engine) const BLOCK: usize = 128;

/// Tasks of one call, if it has no more heads; none has fewer than [`FEWEST_BLOCKS`] blocks.
const TASKS: usize = 16;
const FEWEST_BLOCKS: usize = 4;

/// Queries that read what the keys before a block come to, and the keys that are added after them.
///
/// The queries of a causal span see of its own keys as many as the mask lets them; these pairs are
/// left to the quadratic form. Without causality a span has either queries or keys.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Span {
    pub(super) queries: Range<usize>,
    pub(super) keys: Range<usize>,
    /// The largest exponent among the keys that are summed up before.
    pub(super) before: Level,
    /// The largest exponent once the span's keys have been added.
    pub(super) after: Level,
}

/// Where spans are cut into parts: what is not padding by its own length, so that padding changes no sum, and
/// the padding behind it by the shape.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Cut {
    /// The first spans, which are not all padding, and how many of them make a part.
    counting: usize,
    size: usize,
    /// How many of the others make a part.
    size_of_padding: usize,
}

impl Cut {
    /// The cut of `all` spans, of which the first `counting` are not all padding, for one of `heads` heads; where
    /// spans of queries and keys differ, they are cut alike, by the larger number of both.
    pub(in crate::engine) fn new(counting: usize, all: usize, heads: usize) -> Self {
        Self {
            counting,
            size: part_size(counting, heads),
            size_of_padding: part_size(all, heads),
        }
    }

    /// The parts of some spans, in order.
    pub(in crate::engine) fn parts<'s, S>(
        &self,
        spans: &'s [S],
    ) -> impl Iterator<Item = &'s [S]> + use<'s, S> {
        let (own, padding) = spans.split_at(self.counting.min(spans.len()));
        (own.chunks(self.size)).chain(padding.chunks(self.size_of_padding))
    }
}

/// Consecutive spans: the work of one task.
pub(super) type Part = [Span];

/// The work of one head, cut by its lengths alone.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Whether a part reads the keys of those before it, or of all.
    pub(super) causal: bool,
    /// The reference of each row.
    pub(super) rows: Buffer<Level>,
    queries: Buffer<Span>,
    keys: Buffer<Span>,
    cut: Cut,
    pub(super) order: Order,
}

impl Plan {
    /// The plan of a head that keeps `keys` keys with values of some width, one of `heads`.
    pub(super) fn new<T: Real>(
        workspace: &Workspace<T>,
        rows: &Rows,
        exponents: &Exponents,
        keys: usize,
        heads: usize,
        value_width: usize,
    ) -> Self {
        let causal = rows.mask.is_causal();
        let spans = |count: usize| workspace.pool().empty(count.div_ceil(BLOCK));
        let (mut for_queries, mut for_keys) = (spans(rows.queries), spans(rows.keys));
        if causal {
            causal_spans(rows, exponents, keys, &mut for_keys);
            for_queries = for_keys.clone();
        } else {
            let largest = exponents.largest_from(0);
            let span = |queries, keys| Span {
                queries,
                keys,
                before: largest,
                after: largest,
            };
            for_queries.extend(blocks(0..rows.queries, BLOCK).map(|block| span(block, 0..0)));
            for_keys.extend(blocks(0..keys, BLOCK).map(|block| span(0..0, block)));
        }
        let blocks_of_keys = keys.div_ceil(BLOCK);
        let counting = match causal {
            true => blocks_of_keys,
            false => blocks_of_keys.max(rows.counting().div_ceil(BLOCK)),
        };
        let mut references = workspace.pool().empty(rows.queries);
        let limits = (0..rows.queries).map(|i| rows.limit(i));
        references.extend(exponents.running_references(limits));
        Self {
            causal,
            rows: references,
            cut: Cut::new(counting, for_queries.len().max(for_keys.len()), heads),
            queries: for_queries,
            keys: for_keys,
            order: Order::for_values(value_width),
        }
    }

    /// The plan after earlier keys, of which this is the largest exponent; for few positions.
    pub(crate) fn after(mut self, earlier: Level) -> Self {
        self.order = Order::Features;
        let spans = self.queries.iter_mut().chain(self.keys.iter_mut());
        let levels = spans.flat_map(|span| [&mut span.before, &mut span.after]);
        for level in levels.chain(self.rows.iter_mut()) {
            *level = earlier.max(*level);
        }
        self
    }

    /// Parts whose queries are computed, in order.
    pub(super) fn query_parts(&self) -> impl Iterator<Item = &Part> {
        self.cut.parts(&self.queries)
    }

    /// Parts whose keys are summed up, in order; the parts of the queries if causal.
    pub(super) fn key_parts(&self) -> impl Iterator<Item = &Part> {
        self.cut.parts(&self.keys)
    }
}

/// Blocks of keys with the queries whose last key they hold; padding counts as keys.
fn causal_spans(rows: &Rows, exponents: &Exponents, kept: usize, spans: &mut Vec<Span>) {
    let ends = blocks(0..rows.keys, BLOCK).map(|block| block.end.min(kept));
    let mut before = Level::NONE;
    let afters = exponents.running_references(ends);
    for ((queries, keys), after) in aligned(rows, kept).zip(afters) {
        spans.push(Span {
            queries,
            keys,
            before,
            after,
        });
        before = after;
    }
}

/// Blocks of keys, the kept ones, behind the queries whose last key they hold.
pub(in crate::engine) fn aligned(
    rows: &Rows,
    kept: usize,
) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
    let Rows { queries, keys, .. } = *rows;
    // Query i ends at key i + keys - queries.
    let query = move |key: usize| (key + queries).saturating_sub(keys);
    blocks(0..keys, BLOCK).map(move |block| {
        let (start, end) = (block.start, block.end);
        (query(start)..query(end), start.min(kept)..end.min(kept))
    })
}

/// The spans of a part, for one of `heads` heads.
fn part_size(spans: usize, heads: usize) -> usize {
    spans.div_ceil(TASKS.div_ceil(heads)).max(FEWEST_BLOCKS)
}
