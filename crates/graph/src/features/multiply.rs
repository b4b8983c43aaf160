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
        let Self { width, right, .. } = self;
        for (row, out) in self.range.zip(self.out.chunks_exact_mut(width)) {
            let values = &self.values[self.rows.places(row)];
            for (&column, &value) in self.rows.row(row).iter().zip(values) {
                let right = &right[column as usize * width..][..width];
                for (y, &x) in out.iter_mut().zip(right) {
                    *y = A::mul_add(value, x, *y);
                }
            }
        }
    }
}
