//! Products with dense features, by all threads.

use bochner_numerics::memory::written_by;
use bochner_numerics::{DropoutMask, Mat, MatMut, Panels, Real, matmul, parallel};
use bochner_ops::rows;
use ndarray::ArrayView2;

/// $XW$.
pub(crate) fn times<T: Real>(x: ArrayView2<T>, weight: &[T], width: usize) -> Vec<T> {
    by_rows(x, &Panels::new(Mat::new(weight, x.ncols(), width)))
}

/// $\dot Y W^T$.
pub(crate) fn times_transposed<T: Real>(y: ArrayView2<T>, weight: ArrayView2<T>) -> Vec<T> {
    let shape = weight.dim();
    let weight = weight.as_standard_layout();
    let weight = weight.as_slice().expect("brought to row-major order");
    by_rows(y, &Panels::new(Mat::new(weight, shape.0, shape.1).t()))
}

fn by_rows<T: Real>(x: ArrayView2<T>, right: &Panels<T>) -> Vec<T> {
    let ((rows, terms), width) = (x.dim(), right.shape().1);
    if width == 0 {
        return Vec::new();
    }
    let x = x.as_standard_layout();
    let x = x.as_slice().expect("brought to row-major order");
    let x = Mat::new(x, rows, terms);
    let [out] = rows::by_blocks(rows, [width], rows * terms * width, |range, [piece]| {
        piece.product(x.row_range(range), right);
    });
    out
}

/// $X^T Y$, in sums over parts of the rows that are then added in order.
pub(crate) fn transposed_times<T: Real>(x: ArrayView2<T>, y: &[T], width: usize) -> Vec<T> {
    let (rows, columns) = x.dim();
    let x = x.as_standard_layout();
    let x = Mat::new(
        x.as_slice().expect("brought to row-major order"),
        rows,
        columns,
    );
    let y = Mat::new(y, rows, width);
    let [sum] = rows::sum_over(rows, rows * columns * width, |range| {
        let mut sum = vec![T::zero(); columns * width];
        let target = MatMut::new(&mut sum, columns, width);
        let (x, y) = (x.row_range(range.clone()), y.row_range(range));
        matmul(T::one(), x.t(), y, T::zero(), target);
        [sum]
    });
    sum
}

/// Elements of a piece of work.
const PIECE: usize = 1 << 14;

/// Multiplies by the factors of the elements.
pub(crate) fn drop_out<T: Real>(x: &mut [T], dropout: &DropoutMask) {
    parallel::for_each_chunk(x, PIECE, |i, x| dropout.scale((i * PIECE) as u64, x));
}

/// The elements times their factors.
pub(crate) fn dropped_out<T: Real>(x: &[T], dropout: &DropoutMask) -> Vec<T> {
    let [out] = written_by([x.len()], |[out]| {
        let pieces = out.chunks(PIECE).zip(x.chunks(PIECE)).enumerate().collect();
        parallel::for_each(pieces, |(i, (out, x))| {
            dropout.scale((i * PIECE) as u64, out.copy_of(x));
        });
    });
    out
}
