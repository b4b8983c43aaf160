//! Products of arrays.

use bochner_numerics::memory::zeros;
use bochner_numerics::{Mat, MatMut, Real, matmul};
use ndarray::{Array2, ArrayBase, Data, Ix2};

/// A matrix whose elements stand in row-major order.
///
/// # Panics
/// If they stand in another order.
pub(crate) fn mat<T, S: Data<Elem = T>>(x: &ArrayBase<S, Ix2>) -> Mat<'_, T> {
    let data = x.as_slice().expect("brought to row-major order");
    Mat::new(data, x.nrows(), x.ncols())
}

/// `scale` times the product of two matrices.
pub(crate) fn product<T: Real>(scale: T, a: Mat<T>, b: Mat<T>) -> Array2<T> {
    let (rows, cols) = (a.shape().0, b.shape().1);
    let mut out = zeros(rows * cols);
    let target = MatMut::new(&mut out, rows, cols);
    matmul(scale, a, b, T::zero(), target);
    Array2::from_shape_vec((rows, cols), out).expect("allocated with this shape")
}
