//! What a mask keeps: the keys of a row, and the positions that lengths leave.

use super::Mask;
use ndarray::Array2;
use std::ops::Range;
use std::sync::Arc;

impl Mask {
    /// Whether a pair of an example, a head, a query and a key is kept, in sequences of so many queries
    /// and keys.
    ///
    /// # Panics
    /// If the mask has lengths but none for the example, or a matrix without the pair.
    pub fn keeps(&self, [b, m, i, j]: [usize; 4], [queries, keys]: [usize; 2]) -> bool {
        self.row_range(b, i, queries, keys).contains(&j)
            && self.matrix_row(b, m, i).is_none_or(|row| row[j])
    }

    /// The keys that a row keeps, as far as a matrix lets them.
    #[inline]
    pub(crate) fn row_range(
        &self,
        b: usize,
        i: usize,
        queries: usize,
        keys: usize,
    ) -> Range<usize> {
        let (first, last) = self.sequence_around(i, keys);
        let (mut start, mut end) = (first, last.min(self.key_limit(b, keys)));
        // One past the last key that is fewer than `beyond` positions after the query's own; 0 if there is none.
        let up_to = |beyond: usize| (i + keys).saturating_add(beyond).saturating_sub(queries);
        if self.causal {
            let own = up_to(1).saturating_sub(first);
            let block = self.more_of_block.saturating_add(1);
            let seen = match block {
                1 => own,
                _ => own.checked_next_multiple_of(block).unwrap_or(usize::MAX),
            };
            end = end.min(first.saturating_add(seen.max(self.prefix)));
        }
        if let Some([left, right]) = self.window {
            start = start.max(up_to(0).saturating_sub(left));
            end = end.min(up_to(right.saturating_add(1)));
        }
        start..end.max(start)
    }

    /// Where the packed sequence of a query begins and ends; the whole sequence if none are packed.
    fn sequence_around(&self, i: usize, keys: usize) -> (usize, usize) {
        let Some(ends) = &self.ends else {
            return (0, keys);
        };
        let n = ends.partition_point(|&end| end <= i);
        let first = n.checked_sub(1).map_or(0, |before| ends[before]);
        (first, ends.get(n).copied().unwrap_or(first))
    }

    /// The keys before this index are kept by the lengths.
    pub(crate) fn key_limit(&self, b: usize, keys: usize) -> usize {
        self.key_lengths.as_ref().map_or(keys, |lengths| lengths[b])
    }

    /// How many queries are said not to be padding.
    pub(crate) fn query_limit(&self, b: usize) -> Option<usize> {
        self.query_lengths.as_ref().map(|lengths| lengths[b])
    }

    /// A row of the matrix of an example and a head, if there is one.
    pub(crate) fn matrix_row(&self, b: usize, m: usize, i: usize) -> Option<&[bool]> {
        let (rows, [examples, heads]) = (self.matrix.as_ref()?, self.matrices);
        let matrix = (b % examples) * heads + m % heads;
        Some(&rows[matrix * (rows.len() / (examples * heads)) + i])
    }

    /// The positions that count in a mean over the queries, `[B, Tq]`; `None` if all do.
    ///
    /// # Panics
    /// If there are fewer query lengths than examples.
    pub fn kept_queries(&self, batch: usize, queries: usize) -> Option<Array2<bool>> {
        kept(self.query_lengths.as_ref(), batch, queries)
    }

    /// The positions that count in a mean over the keys, `[B, Tk]`; `None` if all do.
    pub(crate) fn kept_keys(&self, batch: usize, keys: usize) -> Option<Array2<bool>> {
        kept(self.key_lengths.as_ref(), batch, keys)
    }
}

fn kept(lengths: Option<&Arc<Vec<usize>>>, batch: usize, positions: usize) -> Option<Array2<bool>> {
    lengths.map(|lengths| Array2::from_shape_fn((batch, positions), |(b, t)| t < lengths[b]))
}
