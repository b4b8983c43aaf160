//! The product of compressed rows with a matrix.

use crate::compressed::{Rows, cut};
use bochner_numerics::instructions::{Arithmetic, Task, run};
use bochner_numerics::{Operations, Real, operations, parallel};
use std::ops::Range;

/// The matrix with these rows and values times a row-major one of `width` columns. A row is the sum
/// over its entries, in order; the rows are cut into pieces of about `piece` entries, for the threads.
///
/// # Panics
/// If there is not one value an entry, or `right` has not one row for each column.
pub(crate) fn multiply<T: Real>(
    rows: &Rows,
    values: &[T],
    right: &[T],
    width: usize,
    piece: usize,
) -> Vec<T> {
    assert_eq!(values.len(), rows.entries(), "one value an entry");
    operations::record(Operations::multiply_adds(values.len() * width));
    let mut out = vec![T::zero(); rows.count() * width];
    let pieces = rows.pieces(piece);
    let parts = cut(&mut out, width, pieces.iter().map(Range::len));
    parallel::for_each(pieces.into_iter().zip(parts).collect(), |(range, out)| {
        run(Multiply {
            rows,
            range,
            values,
            right,
            width,
            out,
        });
    });
    out
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
    rows: &'a Rows,
    range: Range<usize>,
    values: &'a [T],
    right: &'a [T],
    width: usize,
    out: &'a mut [T],
}

impl<T: Real> Task for Multiply<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let width = self.width;
        for (row, out) in self.range.clone().zip(self.out.chunks_exact_mut(width)) {
            let values = &self.values[self.rows.places(row)];
            let entries = self.rows.row(row).iter().zip(values);
            let rights = entries.map(|(&column, &value)| {
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
