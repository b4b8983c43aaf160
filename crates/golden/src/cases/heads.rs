//! Heads beside each other, as layers have them.

use bochner_numerics::Real;
use ndarray::{Array3, Array4, ArrayView3};

/// `[B, M, T, w]` as `[B, T, M w]`.
pub(super) fn joined<T: Real>(heads: &Array4<T>) -> Array3<T> {
    let (batch, count, time, width) = heads.dim();
    Array3::from_shape_fn((batch, time, count * width), |(b, t, n)| {
        heads[[b, n / width, t, n % width]]
    })
}

/// The inverse of [`joined`].
pub(super) fn split<T: Real>(rows: ArrayView3<T>, heads: usize) -> Array4<T> {
    let (batch, time, all) = rows.dim();
    let width = all / heads;
    Array4::from_shape_fn((batch, heads, time, width), |(b, m, t, n)| {
        rows[[b, t, m * width + n]]
    })
}
