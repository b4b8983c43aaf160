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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_up_the_whole() {
        for n in [0, 1, ROWS, 2 * ROWS + 276] {
            let x = Array2::from_shape_fn((n, 3), |(i, j)| (5 * i + j) as f64);
            let sum = sum_of_rows(x.view());
            assert_eq!(sum, x.sum_axis(Axis(0)));
            let mut y = x.clone();
            add_to_rows(&mut y, sum.view());
            assert_eq!(y, &x + sum);
        }
    }
}
