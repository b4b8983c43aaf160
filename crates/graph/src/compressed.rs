//! Lists of lists in two arrays: compressed sparse rows, and their transposition.

use crate::Error;
use bochner_numerics::memory::{Unwritten, written_by};
use bochner_numerics::{Real, parallel};
use std::ops::Range;
use std::sync::Arc;

/// The rows of a sparse matrix: which columns each has, a row after the other. Clones share them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    /// The place where each row begins, and the place where the last one ends.
    offsets: Arc<[usize]>,
    columns: Arc<[u32]>,
}

impl Rows {
    /// # Panics
    /// If the offsets do not cut the columns into rows.
    pub(crate) fn new(offsets: Vec<usize>, columns: Vec<u32>) -> Self {
        assert!(check_offsets("rows", &offsets, columns.len()).is_ok());
        Self {
            offsets: offsets.into(),
            columns: columns.into(),
        }
    }

    /// The number of rows.
    pub(crate) fn count(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The number of entries of all rows.
    pub(crate) fn entries(&self) -> usize {
        self.columns.len()
    }

    /// The places of the entries of consecutive rows.
    pub(crate) fn entries_of(&self, rows: Range<usize>) -> Range<usize> {
        self.offsets[rows.start]..self.offsets[rows.end]
    }

    pub(crate) fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// The places of the entries of a row.
    #[inline]
    pub(crate) fn places(&self, row: usize) -> Range<usize> {
        self.offsets[row]..self.offsets[row + 1]
    }

    /// The columns of a row.
    #[inline]
    pub(crate) fn row(&self, row: usize) -> &[u32] {
        &self.columns[self.places(row)]
    }

    /// The rows of the transposed matrix, and for each of its entries the place it has here. Within
    /// a row the columns are in order, and equal ones in the order of their places.
    pub(crate) fn transposed(&self, columns: usize) -> (Self, Vec<u32>) {
        let rows = (0..self.count()).flat_map(|row| self.row(row).iter().map(move |_| row as u32));
        by_key(columns, &self.columns, rows)
    }

    /// Consecutive rows that have about `entries` entries together: a split of the work that the
    /// shape alone decides.
    pub(crate) fn pieces(&self, entries: usize) -> Vec<Range<usize>> {
        // A row without entries is work as well.
        let work = |rows: usize| self.offsets[rows] + rows;
        let (mut pieces, mut first) = (Vec::new(), 0);
        while first < self.count() {
            let (mut end, mut above) = (first + 1, self.count());
            while end < above {
                let middle = end.midpoint(above);
                if work(middle) < work(first) + entries {
                    end = middle + 1;
                } else {
                    above = middle;
                }
            }
            pieces.push(first..end);
            first = end;
        }
        pieces
    }
}

/// Sorts `values` by their keys, all below `count`: one row a key, and for each entry the place that
/// it had. Entries of one key keep their order.
pub(crate) fn by_key(
    count: usize,
    keys: &[u32],
    values: impl Iterator<Item = u32>,
) -> (Rows, Vec<u32>) {
    let mut offsets = vec![0; count + 1];
    for &key in keys {
        offsets[key as usize + 1] += 1;
    }
    for row in 0..count {
        offsets[row + 1] += offsets[row];
    }
    let mut next = offsets.clone();
    let (mut columns, mut places) = (vec![0; keys.len()], vec![0; keys.len()]);
    for (place, (&key, value)) in keys.iter().zip(values).enumerate() {
        let to = &mut next[key as usize];
        columns[*to] = value;
        places[*to] = place as u32;
        *to += 1;
    }
    (Rows::new(offsets, columns), places)
}

/// Checks that `offsets` cut a list of `entries` entries into rows.
pub(crate) fn check_offsets(
    what: &'static str,
    offsets: &[usize],
    entries: usize,
) -> Result<(), Error> {
    let wrong = |at: usize, required: String| Error::Offsets {
        what,
        at,
        required,
        got: offsets.get(at).copied(),
    };
    if offsets.first() != Some(&0) {
        return Err(wrong(0, "0".to_owned()));
    }
    if let Some(at) = offsets.windows(2).position(|pair| pair[0] > pair[1]) {
        let before = offsets[at];
        return Err(wrong(at + 1, format!("at least {before}, the one before")));
    }
    let last = offsets.len() - 1;
    if offsets[last] != entries {
        return Err(wrong(last, format!("{entries}, the number of entries")));
    }
    Ok(())
}

/// Cuts a slice of rows of `width` elements into the pieces given, which follow one another.
pub(crate) fn cut<T>(
    mut data: &mut [T],
    width: usize,
    pieces: impl IntoIterator<Item = usize>,
) -> Vec<&mut [T]> {
    let cut = pieces.into_iter().map(|rows| {
        let (piece, rest) = std::mem::take(&mut data).split_at_mut(rows * width);
        data = rest;
        piece
    });
    cut.collect()
}

/// Rows of `width` numbers, in consecutive pieces of so many rows: each is given to `task` with its
/// number, as zeros, by the thread that goes on with it.
pub(crate) fn filled<T: Real>(
    pieces: impl Iterator<Item = usize> + Clone,
    width: usize,
    task: impl Fn(usize, &mut [T]) + Send + Sync,
) -> Vec<T> {
    filled_with(pieces, width, task).0
}

/// [`filled`], with the result of the task for each piece.
pub(crate) fn filled_with<T: Real, R: Default + Send>(
    pieces: impl Iterator<Item = usize> + Clone,
    width: usize,
    task: impl Fn(usize, &mut [T]) -> R + Send + Sync,
) -> (Vec<T>, Vec<R>) {
    let mut results = Vec::new();
    let [out] = written_by([pieces.clone().sum::<usize>() * width], |[out]| {
        let parts = cut_unwritten(out, width, pieces);
        results.resize_with(parts.len(), R::default);
        let tasks = parts.into_iter().enumerate().zip(&mut results);
        parallel::for_each(tasks.collect(), |((i, out), result)| {
            *result = task(i, out.zeros());
        });
    });
    (out, results)
}

/// [`cut`] for memory that nothing has been written to yet.
pub(crate) fn cut_unwritten<T: Real>(
    mut data: Unwritten<T>,
    width: usize,
    pieces: impl IntoIterator<Item = usize>,
) -> Vec<Unwritten<T>> {
    let mut parts = Vec::new();
    for rows in pieces {
        let (piece, rest) = data.split_at(rows * width);
        parts.push(piece);
        data = rest;
    }
    parts
}
