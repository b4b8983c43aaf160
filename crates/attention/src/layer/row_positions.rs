//! The positions at which queries and keys stand, for a code that encodes them.

use crate::{Mask, card::Stream};
use bochner_numerics::{Real, parallel};

/// The positions of the queries and keys of a call: `[T]` if all examples share them, otherwise `[B, T]`.
#[derive(Clone, Debug, Default)]
pub(super) struct RowPositions {
    queries: Vec<usize>,
    keys: Vec<usize>,
}

impl RowPositions {
    /// Whole sequences of so many queries and keys, each counted from its first position.
    ///
    /// Where pairs are `aligned` by their positions, the last query stands at the last key, as in a mask. Packed sequences
    /// begin again.
    pub(super) fn set_whole(
        &mut self,
        mask: &Mask,
        alignment: Alignment,
        [queries, keys]: [usize; 2],
    ) {
        let [query, key] = match alignment {
            Alignment::Ends => [keys.saturating_sub(queries), queries.saturating_sub(keys)],
            Alignment::Starts => [0, 0],
        };
        for (positions, first, count) in [
            (&mut self.queries, query, queries),
            (&mut self.keys, key, keys),
        ] {
            positions.clear();
            positions.extend(first..first + count);
            restart(positions, mask.packed_ends());
        }
    }

    /// The next `count` positions of sequences of these lengths.
    pub(super) fn set_next(&mut self, lengths: impl Iterator<Item = usize>, count: usize) {
        self.queries.clear();
        (self.queries).extend(lengths.flat_map(|length| length..length + count));
        self.keys.clone_from(&self.queries);
    }

    /// The positions of a stream's rows, if it is one that positions are encoded into.
    pub(super) fn of(&self, stream: Stream) -> Option<&[usize]> {
        match stream {
            Stream::Queries => Some(&self.queries),
            Stream::Keys => Some(&self.keys),
            Stream::Values | Stream::Scores | Stream::Input => None,
        }
    }
}

/// The positions at which queries and keys of different numbers meet.
#[derive(Clone, Copy, Debug)]
pub(super) enum Alignment {
    /// The first query stands at the first key's position: two sequences with positions of their own.
    Starts,
    /// The last query stands at the last key's position: a sequence and its last positions.
    Ends,
}

/// Counts the positions of each packed sequence from 0.
fn restart(positions: &mut [usize], ends: Option<&[usize]>) {
    let mut start = 0;
    for &end in ends.unwrap_or_default() {
        // A mask that does not fit is an error of the pass.
        let end = end.min(positions.len());
        (positions[start..end].iter_mut()).for_each(|position| *position -= start);
        start = end;
    }
}

/// Calls `f` with some heads `[n, T, w]` and the positions of their rows, for all heads of an array `[B, M, T, w]`.
pub(super) fn for_each_place<T: Real>(
    rows: &mut [T],
    [batch, heads, time, width]: [usize; 4],
    positions: &[usize],
    f: impl Fn(&[usize], &mut [T]) + Send + Sync,
) {
    /// Numbers that one task encodes where all examples share their positions, about.
    const PIECE: usize = 1 << 17;
    let head = time * width;
    if rows.is_empty() {
        return;
    }
    let shared = positions.len() == time;
    debug_assert!(shared || positions.len() == batch * time);
    let count = if shared { (PIECE / head).max(1) } else { heads };
    parallel::for_each_chunk(rows, count * head, |piece, rows| {
        let first = if shared { 0 } else { piece * time };
        f(&positions[first..first + time], rows);
    });
}
