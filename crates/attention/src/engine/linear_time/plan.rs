//! Who is summed up before whom.

use crate::engine::{Exponents, Level, Rows, blocks};
use std::ops::Range;

/// Positions of a block.
pub(super) const BLOCK: usize = 128;

/// Tasks of one call, if it has no more heads; none has fewer than [`FEWEST_BLOCKS`] blocks.
const TASKS: usize = 16;
const FEWEST_BLOCKS: usize = 4;

/// Queries that read what the keys before a block come to, and the keys that are added after them.
///
/// The queries of a causal span see of its own keys as many as the mask lets them; these pairs are
/// left to the quadratic form. Without causality a span has either queries or keys.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) queries: Range<usize>,
    pub(super) keys: Range<usize>,
    /// The largest exponent among the keys that are summed up before.
    pub(super) before: Level,
    /// The same after the span's keys have been added.
    pub(super) after: Level,
}

/// Consecutive spans: the work of one task.
pub(super) type Part = [Span];

/// The work of one head, cut by its shape alone.
#[derive(Debug)]
pub(super) struct Plan {
    /// Whether a part reads the keys of those before it, or of all.
    pub(super) causal: bool,
    /// The reference of each row.
    pub(super) rows: Vec<Level>,
    queries: Vec<Span>,
    keys: Vec<Span>,
    /// Spans of a part.
    size: usize,
}

impl Plan {
    /// Of a head that keeps `keys` keys, one of `heads`.
    pub(super) fn new(rows: &Rows, exponents: &Exponents, keys: usize, heads: usize) -> Self {
        let limits: Vec<usize> = (0..rows.queries).map(|i| rows.limit(i)).collect();
        let causal = rows.mask.is_causal();
        let (queries, keys) = if causal {
            let spans = causal_spans(rows, exponents, keys);
            (spans.clone(), spans)
        } else {
            let largest = exponents.running_references(&[keys])[0];
            let span = |queries, keys| Span {
                queries,
                keys,
                before: largest,
                after: largest,
            };
            let queries = blocks(0..rows.queries, BLOCK).map(|block| span(block, 0..0));
            let keys = blocks(0..keys, BLOCK).map(|block| span(0..0, block));
            (queries.collect(), keys.collect())
        };
        Self {
            causal,
            rows: exponents.running_references(&limits),
            size: part_size(queries.len().max(keys.len()), heads),
            queries,
            keys,
        }
    }

    /// The same after earlier keys, of which this is the largest exponent.
    pub(super) fn after(&mut self, earlier: Level) {
        let spans = self.queries.iter_mut().chain(&mut self.keys);
        let levels = spans.flat_map(|span| [&mut span.before, &mut span.after]);
        for level in levels.chain(&mut self.rows) {
            *level = earlier.max(*level);
        }
    }

    /// Parts whose queries are computed, in order.
    pub(super) fn query_parts(&self) -> impl ExactSizeIterator<Item = &Part> {
        self.queries.chunks(self.size)
    }

    /// Parts whose keys are summed up, in order; if causal, the same.
    pub(super) fn key_parts(&self) -> impl ExactSizeIterator<Item = &Part> {
        self.keys.chunks(self.size)
    }
}

/// Blocks of keys with the queries whose last key they hold; padding counts as keys.
fn causal_spans(rows: &Rows, exponents: &Exponents, kept: usize) -> Vec<Span> {
    let Rows { queries, keys, .. } = *rows;
    let ends: Vec<usize> = blocks(0..keys, BLOCK)
        .map(|block| block.end.min(kept))
        .collect();
    let mut before = Level::NONE;
    let references = exponents.running_references(&ends);
    let spans = blocks(0..keys, BLOCK).zip(references);
    spans
        .map(|(block, after)| {
            // Query i ends at key i + keys - queries.
            let query = |key: usize| (key + queries).saturating_sub(keys);
            let span = Span {
                queries: query(block.start)..query(block.end),
                keys: block.start.min(kept)..block.end.min(kept),
                before,
                after,
            };
            before = after;
            span
        })
        .collect()
}

fn part_size(spans: usize, heads: usize) -> usize {
    spans.div_ceil(TASKS.div_ceil(heads)).max(FEWEST_BLOCKS)
}
