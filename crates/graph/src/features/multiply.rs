//! The product of compressed rows with a matrix.

use crate::compressed::{Rows, filled};
use bochner_numerics::instructions::{Arithmetic, Task, run};
use bochner_numerics::{Operations, Real, operations};
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
    let pieces = rows.pieces(piece);
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

/// The columns and values of a row's entries, but for zeros: of transposed features, of which dropout
/// leaves many and whose values lie far apart. Without a branch, which would be guessed wrong as often.
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
    terms: impl Iterator<Item = (T, &'a [T])> + Clone,
    out: &mut [T],
) {
    let width = out.len();
    let (blocks, rest) = out.as_chunks_mut::<BLOCK>();
    for (i, out) in blocks.iter_mut().enumerate() {
        sum::<T, A, BLOCK>(terms.clone(), i * BLOCK, out);
    }
    let first = width - rest.len();
    let (small, rest) = rest.as_chunks_mut::<SMALL>();
    for (i, out) in small.iter_mut().enumerate() {
        sum::<T, A, SMALL>(terms.clone(), first + i * SMALL, out);
    }
    let first = width - rest.len();
    for (value, right) in terms {
        for (y, &x) in rest.iter_mut().zip(&right[first..]) {
            *y = A::mul_add(value, x, *y);
        }
    }
}
