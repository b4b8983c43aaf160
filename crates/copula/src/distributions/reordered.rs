//! The factor of a correlation matrix whose coordinates come in another order.
//!
//! No library reorders a row-normalised factor without forming the correlation matrix again.

use ndarray::{Array2, ArrayView2};

/// The factor of the matrix with rows and columns in another order: `order[i]` comes to place `i`.
///
/// Rotates the reordered rows of the factor back into triangular form, so that nothing is squared
/// and a factor close to singular stays one.
pub(crate) fn reordered(factor: ArrayView2<f64>, order: &[usize]) -> Array2<f64> {
    let size = order.len();
    let mut l = Array2::from_shape_fn((size, size), |(i, k)| factor[[order[i], k]]);
    for i in 0..size {
        for k in i + 1..size {
            rotate(&mut l, i, k);
        }
        if l[[i, i]] < 0.0 {
            l.column_mut(i).mapv_inplace(|x| -x);
        }
    }
    l
}

/// Turns columns `i` and `k` so that the entry `(i, k)` vanishes.
fn rotate(l: &mut Array2<f64>, i: usize, k: usize) {
    let radius = l[[i, i]].hypot(l[[i, k]]);
    if l[[i, k]] == 0.0 {
        return;
    }
    let (cos, sin) = (l[[i, i]] / radius, l[[i, k]] / radius);
    for row in i..l.nrows() {
        let (a, b) = (l[[row, i]], l[[row, k]]);
        l[[row, i]] = cos * a + sin * b;
        l[[row, k]] = cos * b - sin * a;
    }
    l[[i, k]] = 0.0;
}
