//! Matrix products in which a masked NaN stays behind its mask.

use bochner_numerics::{Buffers, Mat, MatMut, Real, matmul_in};

/// $C \leftarrow C + A B$, where zeros of `a` hide whatever `b` holds if `b` is not all finite.
///
/// A plain product would turn `0 * NaN` into NaN and let a masked key reach a row that does not
/// keep it.
pub(super) fn add_product<T: Real>(
    buffers: &Buffers<T>,
    a: Mat<T>,
    b: Mat<T>,
    b_is_finite: bool,
    c: &mut [T],
) {
    let ((rows, inner), (_, cols)) = (a.shape(), b.shape());
    if b_is_finite {
        matmul_in(
            buffers,
            T::one(),
            a,
            b,
            T::one(),
            MatMut::new(c, rows, cols),
        );
        return;
    }
    for i in 0..rows {
        for l in (0..inner).filter(|&l| a.get(i, l) != T::zero()) {
            for j in 0..cols {
                c[i * cols + j] += a.get(i, l) * b.get(l, j);
            }
        }
    }
}
