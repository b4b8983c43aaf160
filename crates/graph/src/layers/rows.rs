//! Sums over the rows of matrices, by all threads and in a fixed order.

use bochner_numerics::{Real, parallel};
use bochner_ops::rows::sum_over;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};

/// Rows of a piece of work.
const ROWS: usize = 512;

/// Adds `row` to each row of `x`.
pub(super) fn add_to_rows<T: Real>(x: &mut Array2<T>, row: ArrayView1<T>) {
    let parts = x.axis_chunks_iter_mut(Axis(0), ROWS).collect();
    parallel::for_each(parts, |mut rows| rows += &row);
}

/// The sum of the rows of `x`.
pub(super) fn sum_of_rows<T: Real>(x: ArrayView2<T>) -> Array1<T> {
    let [sum] = sum_over(x.nrows(), x.len(), |range| {
        let mut sum = vec![T::zero(); x.ncols()];
        for row in x.slice(s![range, ..]).rows() {
            sum.iter_mut().zip(row).for_each(|(sum, &x)| *sum += x);
        }
        [sum]
    });
    sum.into()
}
