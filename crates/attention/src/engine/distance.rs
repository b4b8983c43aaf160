//! Squared distances by direct differences, exact where the expanded square would cancel.

use bochner_numerics::operations::record;
use bochner_numerics::{Buffers, Mat, Operations, Real};

/// Writes $|l_i - r_j|^2$ of all rows, `[rows of left, rows of right]`.
pub(super) fn squared_distances<T: Real>(
    left: Mat<T>,
    right: Mat<T>,
    buffers: &Buffers<T>,
    distances: &mut [T],
) {
    let ((rows, width), (cols, _)) = (left.shape(), right.shape());
    record(Operations::multiply_adds(rows * cols * width));
    // Coordinate by coordinate, so that a row of distances is one vectorised sum.
    let mut columns = buffers.empty(width * cols);
    columns.extend((0..width).flat_map(|n| (0..cols).map(move |j| right.get(j, n))));
    distances.fill(T::zero());
    for (i, row) in distances.chunks_exact_mut(cols.max(1)).enumerate() {
        for (&x, column) in left.row(i).iter().zip(columns.chunks_exact(cols)) {
            add_squares(x, column, row);
        }
    }
}

#[inline]
fn add_squares<T: Real>(x: T, column: &[T], sums: &mut [T]) {
    for (sum, &y) in sums.iter_mut().zip(column) {
        *sum += (x - y) * (x - y);
    }
}

/// Adds to `d_left` and `d_right` what half the squared distances pull back from `dx`.
///
/// Zeros of `dx` hide whatever the rows hold: a masked one may be NaN.
pub(super) fn pull_distances<T: Real>(
    dx: Mat<T>,
    left: Mat<T>,
    right: Mat<T>,
    d_left: &mut [T],
    d_right: &mut [T],
) {
    let width = left.shape().1;
    for (i, d_left) in d_left.chunks_exact_mut(width).enumerate() {
        for (j, d_right) in d_right.chunks_exact_mut(width).enumerate() {
            let c = dx.get(i, j);
            if c != T::zero() {
                pull_one(c, left.row(i), right.row(j), d_left, d_right);
            }
        }
    }
}

#[inline]
fn pull_one<T: Real>(c: T, left: &[T], right: &[T], d_left: &mut [T], d_right: &mut [T]) {
    let pairs = left.iter().zip(right);
    for ((&x, &y), (a, b)) in pairs.zip(d_left.iter_mut().zip(d_right)) {
        let g = c * (x - y);
        *a += g;
        *b -= g;
    }
}
