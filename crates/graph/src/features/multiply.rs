//! The product of compressed rows with a matrix.

use crate::compressed::{Rows, filled};
use crate::sums::weighted_sum;
use bochner_numerics::instructions::{Arithmetic, Task, run};
use bochner_numerics::{Operations, Real, operations};
use std::ops::Range;

/// Compressed rows with a value at each of their entries.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a, T> {
    pub(crate) rows: &'a Rows,
    pub(crate) values: &'a [T],
    /// The place of the value of each entry; without, the values are in the order of the rows.
    pub(crate) places: Option<&'a [u32]>,
}

/// The matrix times a row-major one of `width` columns. A row is the sum over its entries, in order; the
/// rows are cut into pieces of about `piece` entries, for the threads.
///
/// # Panics
/// If there is not one value an entry, or `right` has not one row for each column.
pub(crate) fn multiply<T: Real>(
    matrix: Matrix<T>,
    right: &[T],
    width: usize,
    piece: usize,
) -> Vec<T> {
    let rows = matrix.rows;
    assert_eq!(matrix.values.len(), rows.entries(), "one value an entry");
    operations::record(Operations::multiply_adds(rows.entries() * width));
    let (pieces, mut memory) = (rows.pieces(piece), Vec::new());
    let read_often = rows.entries() >= READS * (right.len() / width.max(1));
    let right = if read_often {
        aligned(right, &mut memory)
    } else {
        right
    };
    filled(pieces.iter().map(Range::len), width, |i, out| {
        run(Multiply {
            matrix,
            range: pieces[i].clone(),
            right,
            width,
            out,
        });
    })
}

/// The average number of times that each row of the right matrix must be read for an aligned copy to pay.
const READS: usize = 8;

/// The bytes of a cache line and of the widest register.
const LINE: usize = 64;

/// `x` from a multiple of [`LINE`] bytes on, copied into `memory` if it begins elsewhere. Most loads of an
/// array that begins elsewhere touch two cache lines, which makes the product up to 1.6 times as slow; where
/// an array begins is the allocator's choice.
fn aligned<'a, T: Real>(x: &'a [T], memory: &'a mut Vec<T>) -> &'a [T] {
    if x.as_ptr().align_offset(LINE) == 0 {
        return x;
    }
    memory.reserve_exact(x.len() + LINE / size_of::<T>());
    let first = memory.as_ptr().align_offset(LINE);
    memory.resize(first, T::zero());
    memory.extend_from_slice(x);
    &memory[first..]
}

/// Returns the columns and values of a row's nonzero entries. The entries are those of transposed features: dropout
/// leaves many zeros among them, and their values lie far apart. There is no branch, because it would be mispredicted
/// as often.
#[inline(always)]
fn keep_nonzero<T: Real>(
    entries: impl ExactSizeIterator<Item = (u32, T)>,
    kept: &mut Vec<(u32, T)>,
) {
    kept.resize(entries.len(), (0, T::zero()));
    let mut count = 0;
    for (column, value) in entries {
        kept[count] = (column, value);
        count += usize::from(value != T::zero());
    }
    kept.truncate(count);
}

/// Columns whose sums stay in registers.
const BLOCK: usize = 64;
const SMALL: usize = 8;

struct Multiply<'a, T> {
    matrix: Matrix<'a, T>,
    range: Range<usize>,
    right: &'a [T],
    width: usize,
    out: &'a mut [T],
}

impl<T: Real> Task for Multiply<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let (
            width,
            Matrix {
                rows,
                values,
                places,
            },
        ) = (self.width, self.matrix);
        let row_of = |column: u32| &self.right[column as usize * width..][..width];
        let mut kept = Vec::new();
        for (row, out) in self.range.clone().zip(self.out.chunks_exact_mut(width)) {
            let (columns, at) = (rows.row(row), rows.places(row));
            if let Some(places) = places {
                let values = places[at].iter().map(|&place| values[place as usize]);
                keep_nonzero(columns.iter().copied().zip(values), &mut kept);
                let terms = kept.iter().map(|&(column, value)| (value, row_of(column)));
                sums::<T, A>(terms, out);
            } else {
                let terms = columns.iter().zip(&values[at]);
                sums::<T, A>(terms.map(|(&column, &value)| (value, row_of(column))), out);
            }
        }
    }
}

/// A row of the product.
#[inline(always)]
fn sums<'a, T: Real, A: Arithmetic>(
    terms: impl ExactSizeIterator<Item = (T, &'a [T])> + Clone,
    out: &mut [T],
) {
    let (blocks, small) = out.as_chunks_mut::<BLOCK>();
    let first_small = blocks.len() * BLOCK;
    let columns = |first: usize, count: usize| {
        let terms = terms.clone();
        terms.map(move |(value, right)| (value, &right[first..][..count]))
    };
    for (i, out) in blocks.iter_mut().enumerate() {
        *out = weighted_sum::<T, A, BLOCK>(columns(i * BLOCK, BLOCK));
    }
    let (small, rest) = small.as_chunks_mut::<SMALL>();
    let first_rest = first_small + small.len() * SMALL;
    for (i, out) in small.iter_mut().enumerate() {
        *out = weighted_sum::<T, A, SMALL>(columns(first_small + i * SMALL, SMALL));
    }
    if !rest.is_empty() {
        let sum = weighted_sum::<T, A, SMALL>(columns(first_rest, rest.len()));
        rest.copy_from_slice(&sum[..rest.len()]);
    }
}
