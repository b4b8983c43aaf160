//! The product of compressed rows with a matrix.

use crate::compressed::{Rows, cut};
use bochner_numerics::instructions::{Arithmetic, Task, run};
use bochner_numerics::{Operations, Real, operations, parallel};
use std::ops::Range;

/// Compressed rows with a value at each of their entries.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a, T> {
    pub(crate) rows: &'a Rows,
    pub(crate) values: &'a [T],
    /// Where the value of an entry stands; without, where the entry stands in the rows.
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
    let mut out = vec![T::zero(); rows.count() * width];
    let pieces = rows.pieces(piece);
    let parts = cut(&mut out, width, pieces.iter().map(Range::len));
    parallel::for_each(pieces.into_iter().zip(parts).collect(), |(range, out)| {
        run(Multiply {
            matrix,
            range,
            right,
            width,
            out,
        });
    });
    out
}

/// The columns and values of a row's entries, but for zeros: dropout leaves many. Without a branch,
/// which would be guessed wrong as often.
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

/// Some columns of a row of the product, from column `first` of the right matrix on.
#[inline(always)]
fn sum<'a, T: Real, A: Arithmetic, const N: usize>(
    rights: impl Iterator<Item = (T, &'a [T])>,
    first: usize,
    out: &mut [T; N],
) {
    let mut sums = [T::zero(); N];
    for (value, right) in rights {
        let right: &[T; N] = right[first..][..N].try_into().expect("as many");
        for (sum, &x) in sums.iter_mut().zip(right) {
            *sum = A::mul_add(value, x, *sum);
        }
    }
    *out = sums;
}

struct Multiply<'a, T> {
    matrix: Matrix<'a, T>,
    range: Range<usize>,
    right: &'a [T],
    width: usize,
    out: &'a mut [T],
}

impl<T: Real> Task for Multiply<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let (
            width,
            Matrix {
                rows,
                values,
                places,
            },
        ) = (self.width, self.matrix);
        let mut kept = Vec::new();
        for (row, out) in self.range.clone().zip(self.out.chunks_exact_mut(width)) {
            let entries = rows.row(row).iter().zip(rows.places(row));
            let entries = entries.map(|(&column, entry)| {
                let place = places.map_or(entry, |places| places[entry] as usize);
                (column, values[place])
            });
            keep_nonzero(entries, &mut kept);
            let rights = kept.iter().map(|&(column, value)| {
                let right = &self.right[column as usize * width..][..width];
                (value, right)
            });
            let (blocks, rest) = out.as_chunks_mut::<BLOCK>();
            for (i, out) in blocks.iter_mut().enumerate() {
                sum::<T, A, BLOCK>(rights.clone(), i * BLOCK, out);
            }
            let first = width - rest.len();
            let (small, rest) = rest.as_chunks_mut::<SMALL>();
            for (i, out) in small.iter_mut().enumerate() {
                sum::<T, A, SMALL>(rights.clone(), first + i * SMALL, out);
            }
            let first = width - rest.len();
            for (value, right) in rights {
                for (y, &x) in rest.iter_mut().zip(&right[first..]) {
                    *y = A::mul_add(value, x, *y);
                }
            }
        }
    }
}
