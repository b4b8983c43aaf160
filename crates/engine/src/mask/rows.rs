//! The rows of a mask, and the positions that lengths leave.

use super::{HeadPattern, Mask, Pattern};
use ndarray::Array2;
use std::ops::Range;
use std::sync::Arc;

impl Mask {
    /// Whether a pair `[example, head, query, key]` is kept, in sequences of so many queries and keys.
    ///
    /// # Panics
    /// If the mask has lengths but none for the example, or a matrix without the pair.
    pub fn keeps(&self, [b, m, i, j]: [usize; 4], [queries, keys]: [usize; 2]) -> bool {
        let position = (i + keys) as i64 - queries as i64;
        self.row_range(b, i, queries, keys).contains(&j)
            && self
                .matrices
                .as_ref()
                .is_none_or(|all| all.of_head(b, m).keeps(i, j))
            && self
                .pairs
                .as_ref()
                .is_none_or(|rule| rule.keeps(position, j as i64))
    }

    /// Returns the keys that a row `[example, head, query]` keeps, in order.
    ///
    /// # Panics
    /// The panics of [`Mask::keeps`].
    pub fn kept_keys_of(
        &self,
        [b, m, i]: [usize; 3],
        sizes: [usize; 2],
    ) -> impl Iterator<Item = usize> {
        let all = self.row_range(b, i, sizes[0], sizes[1]);
        let is_by_range = !self.has_matrices();
        all.filter(move |&j| is_by_range || self.keeps([b, m, i, j], sizes))
    }

    /// Returns the keys that a row keeps, as far as matrices and functions let it.
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
        start.min(end)..end
    }

    /// The first of `length` positions that the next one sees, under a mask without lengths; no later one sees those
    /// before it.
    pub(crate) fn first_seen(&self, length: usize) -> usize {
        self.row_range(0, 0, 1, length + 1).start
    }

    /// Returns the begin and the end of the packed sequence of a query; the whole sequence if none are packed.
    fn sequence_around(&self, i: usize, keys: usize) -> (usize, usize) {
        let Some(ends) = &self.ends else {
            return (0, keys);
        };
        let n = ends.partition_point(|&end| end <= i);
        let first = n.checked_sub(1).map_or(0, |before| ends[before]);
        (first, ends.get(n).copied().unwrap_or(first))
    }

    /// The number of keys of an example that are not padding.
    pub fn key_limit(&self, b: usize, keys: usize) -> usize {
        self.key_lengths.as_ref().map_or(keys, |lengths| lengths[b])
    }

    /// The number of queries of an example that are not padding, if it was stated.
    pub(crate) fn query_limit(&self, b: usize) -> Option<usize> {
        self.query_lengths.as_ref().map(|lengths| lengths[b])
    }

    /// Returns the positions that count in a mean over the queries, `[B, Tq]`; `None` if all do.
    ///
    /// # Panics
    /// If there are fewer query lengths than examples.
    pub fn kept_queries(&self, batch: usize, queries: usize) -> Option<Array2<bool>> {
        kept(self.query_lengths.as_ref(), batch, queries)
    }

    /// Returns the positions that count in a mean over the keys, `[B, Tk]`; `None` if all do.
    ///
    /// # Panics
    /// If there are fewer key lengths than examples.
    pub fn kept_keys(&self, batch: usize, keys: usize) -> Option<Array2<bool>> {
        kept(self.key_lengths.as_ref(), batch, keys)
    }

    /// Returns the patterns of a call of these sizes: those of matrices and of functions.
    pub(crate) fn patterns(&self, queries: usize, keys: usize) -> Vec<Arc<Pattern>> {
        let rule = self.pairs.as_ref().map(|rule| rule.pattern(queries, keys));
        self.matrices.clone().into_iter().chain(rule).collect()
    }
}

fn kept(lengths: Option<&Arc<Vec<usize>>>, batch: usize, positions: usize) -> Option<Array2<bool>> {
    lengths.map(|lengths| Array2::from_shape_fn((batch, positions), |(b, t)| t < lengths[b]))
}

/// The mask as the rows of one head see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadMask<'a> {
    pub(crate) mask: &'a Mask,
    pub(crate) example: usize,
    pub(crate) head: usize,
    pub(crate) queries: usize,
    pub(crate) keys: usize,
    pub(crate) patterns: &'a [Arc<Pattern>],
    /// The keys that each query sees, `[queries, keys]`, where a decoder says so itself.
    pub(crate) seen: Option<&'a [bool]>,
}

impl<'a> HeadMask<'a> {
    /// Returns the keys that a row keeps, as far as patterns let it.
    pub(crate) fn range(&self, i: usize) -> Range<usize> {
        self.mask
            .row_range(self.example, i, self.queries, self.keys)
    }

    /// Whether ranges alone decide.
    pub(crate) fn is_by_ranges(&self) -> bool {
        self.patterns.is_empty() && self.seen.is_none()
    }

    /// Whether every row keeps all keys before its limit, and limits never decrease.
    pub(crate) fn keeps_prefixes(&self) -> bool {
        !self.mask.has_starts() && self.is_by_ranges()
    }

    fn of_head(&self) -> impl Iterator<Item = HeadPattern<'a>> {
        let (example, head) = (self.example, self.head);
        self.patterns
            .iter()
            .map(move |pattern| pattern.of_head(example, head))
    }

    /// Whether a row keeps a key of its range.
    pub(crate) fn keeps(&self, i: usize, j: usize) -> bool {
        self.of_head().all(|pattern| pattern.keeps(i, j))
            && self.seen.is_none_or(|seen| seen[i * self.keys + j])
    }

    /// Whether a row keeps any key.
    pub(crate) fn keeps_any(&self, i: usize) -> bool {
        self.range(i).any(|j| self.keeps(i, j))
    }

    /// Whether all pairs of some queries and keys are hidden by a pattern.
    pub(crate) fn hides(&self, queries: &Range<usize>, keys: &Range<usize>) -> bool {
        self.of_head().any(|pattern| pattern.hides(queries, keys))
    }

    /// Overwrites the numbers of hidden keys in a row that holds one for each of `keys`.
    #[inline]
    pub(crate) fn fill_hidden<T: Copy>(
        &self,
        i: usize,
        keys: &Range<usize>,
        row: &mut [T],
        value: T,
    ) {
        let Range { start, end } = self.range(i);
        let [start, end] = [start, end].map(|j| j.clamp(keys.start, keys.end) - keys.start);
        if start > 0 || end < row.len() {
            row[..start].fill(value);
            row[end..].fill(value);
        }
        for pattern in self.of_head() {
            pattern.fill_hidden(i, keys.start, row, value);
        }
        if let Some(seen) = self.seen {
            let seen = &seen[i * self.keys + keys.start..][..row.len()];
            let hidden = row.iter_mut().zip(seen).filter(|(_, seen)| !**seen);
            hidden.for_each(|(x, _)| *x = value);
        }
    }

    /// Returns the number of queries that are not padding, as far as it is known: as many queries as keys are one
    /// sequence. The numbers of a sequence must not depend on how far it is padded.
    pub(crate) fn counting(&self) -> usize {
        match self.mask.query_limit(self.example) {
            Some(limit) => limit,
            None if self.queries == self.keys => self.mask.key_limit(self.example, self.keys),
            None => self.queries,
        }
    }
}
