//! Sums over the rows of matrices, by all threads and in a fixed order.
//!
//! The parts are not those of `bochner_ops::rows::sum_over`: published results fix the last digits of the
//! sums here.

use crate::sums::sum_of;
use bochner_numerics::{Real, parallel};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};

/// Rows of a piece of work.
const ROWS: usize = 512;

/// Adds `row` to each row of `x`.
pub(super) fn add_to_rows<T: Real>(x: &mut Array2<T>, row: ArrayView1<T>) {
    let parts = x.axis_chunks_iter_mut(Axis(0), ROWS).collect();
    parallel::for_each(parts, |mut rows| rows += &row);
}

/// The sum of the rows of `x`.
pub(super) fn sum_of_rows<T: Real>(x: ArrayView2<T>) -> Array1<T> {
    let parts: Vec<_> = x.axis_chunks_iter(Axis(0), ROWS).collect();
    let sums = parallel::map(parts.len(), |i| {
        let mut sum = vec![T::zero(); x.ncols()];
        for row in parts[i].rows() {
            sum.iter_mut().zip(row).for_each(|(sum, &x)| *sum += x);
        }
        sum
    });
    sum_of(sums, x.ncols()).into()
}
