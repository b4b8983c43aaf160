//! The order in which blocks of keys are summed up and read.

use crate::call::blocks;
use crate::mask::HeadMask;
use bochner_numerics::{Buffer, Buffers};
use std::ops::Range;

/// Positions of a block.
pub(crate) const BLOCK: usize = 128;

/// Tasks of one call, if it has no more heads; none has fewer than [`FEWEST_BLOCKS`] blocks.
const TASKS: usize = 16;
const FEWEST_BLOCKS: usize = 4;

/// One step of the scan: queries that read the sums over earlier keys, then the keys added to those sums.
///
/// The queries of a causal span see of its own keys as many as the mask lets them, pair by pair. Without
/// causality a span has either queries or keys.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Span {
    pub(crate) queries: Range<usize>,
    pub(crate) keys: Range<usize>,
}

/// Consecutive spans: the work of one task.
pub(crate) type Part = [Span];

/// The spans of one head, cut into parts by its lengths alone.
#[derive(Debug)]
pub(crate) struct Course {
    /// Whether a part reads the keys of those before it, or of all.
    pub(super) causal: bool,
    /// The number of queries.
    pub(super) rows: usize,
    queries: Buffer<Span>,
    keys: Buffer<Span>,
    cut: Cut,
}

impl Course {
    /// The course of a head that keeps `keys` keys, one of `heads`.
    pub(crate) fn new(rows: &HeadMask, keys: usize, heads: usize, spans: &Buffers<Span>) -> Self {
        let causal = rows.mask.is_causal();
        let count = rows.queries.max(rows.keys).div_ceil(BLOCK);
        let (mut for_queries, mut for_keys) = (spans.empty(count), spans.empty(count));
        let mut counting = keys.div_ceil(BLOCK);
        if causal {
            for_keys.extend(aligned(rows, keys));
            for_queries.extend_from_slice(&for_keys);
        } else {
            counting = counting.max(rows.counting().div_ceil(BLOCK));
            let span = |queries, keys| Span { queries, keys };
            for_queries.extend(blocks(0..rows.queries, BLOCK).map(|block| span(block, 0..0)));
            for_keys.extend(blocks(0..keys, BLOCK).map(|block| span(0..0, block)));
        }
        Self {
            causal,
            rows: rows.queries,
            cut: Cut::new(counting, for_queries.len().max(for_keys.len()), heads),
            queries: for_queries,
            keys: for_keys,
        }
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

/// The cut of spans into parts. Spans that are not all padding are cut by their own number, so that padding changes no
/// sum. The padding behind them is cut by the shape.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// The number of leading spans that are not all padding, and the number of them in a part.
    counting: usize,
    size: usize,
    /// The number of the other spans in a part.
    size_of_padding: usize,
}

impl Cut {
    /// The cut of `all` spans, of which the first `counting` are not all padding, for one of `heads` heads; where
    /// spans of queries and keys differ, they are cut alike, by the larger number of both.
    fn new(counting: usize, all: usize, heads: usize) -> Self {
        Self {
            counting,
            size: part_size(counting, heads),
            size_of_padding: part_size(all, heads),
        }
    }

    /// The parts of some spans, in order.
    fn parts<'s>(&self, spans: &'s [Span]) -> impl Iterator<Item = &'s Part> + use<'s> {
        let (own, padding) = spans.split_at(self.counting.min(spans.len()));
        (own.chunks(self.size)).chain(padding.chunks(self.size_of_padding))
    }
}

/// Blocks of keys, the kept ones, behind the queries whose last key they hold.
fn aligned(rows: &HeadMask, kept: usize) -> impl Iterator<Item = Span> {
    let HeadMask { queries, keys, .. } = *rows;
    // Query i ends at key i + keys - queries.
    let query = move |key: usize| (key + queries).saturating_sub(keys);
    blocks(0..keys, BLOCK).map(move |block| Span {
        queries: query(block.start)..query(block.end),
        keys: block.start.min(kept)..block.end.min(kept),
    })
}

/// The spans of a part, for one of `heads` heads.
fn part_size(spans: usize, heads: usize) -> usize {
    spans.div_ceil(TASKS.div_ceil(heads)).max(FEWEST_BLOCKS)
}
