//! Products with dense features, by all threads.

use bochner_numerics::{Dropout, Mat, MatMut, Panels, Real, matmul, parallel};
use ndarray::ArrayView2;

/// Rows of a piece of work.
const ROWS: usize = 128;

/// The least number of rows that are summed up on their own, and the most such sums there are.
const SUMMED_ROWS: usize = 512;
const SUMS: usize = 16;

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
    let (terms, width) = right.shape();
    let mut out = vec![T::zero(); x.nrows() * width];
    if out.is_empty() {
        return out;
    }
    let rows = x.nrows();
    let x = x.as_standard_layout();
    let x = Mat::new(
        x.as_slice().expect("brought to row-major order"),
        rows,
        terms,
    );
    parallel::for_each_chunk(&mut out, ROWS * width, |i, out| {
        let rows = out.len() / width;
        let x = x.row_range(i * ROWS..i * ROWS + rows);
        matmul(T::one(), x, right, T::zero(), MatMut::new(out, rows, width));
    });
    out
}

/// $X^T Y$, in at most [`SUMS`] sums over rows that are then added in order.
pub(crate) fn transposed_times<T: Real>(x: ArrayView2<T>, y: &[T], width: usize) -> Vec<T> {
    let (rows, columns) = x.dim();
    let x = x.as_standard_layout();
    let x = Mat::new(
        x.as_slice().expect("brought to row-major order"),
        rows,
        columns,
    );
    let y = Mat::new(y, rows, width);
    let each = rows.div_ceil(SUMS).max(SUMMED_ROWS);
    let sums = parallel::map(rows.div_ceil(each), |i| {
        let range = i * each..((i + 1) * each).min(rows);
        let mut sum = vec![T::zero(); columns * width];
        let target = MatMut::new(&mut sum, columns, width);
        let (x, y) = (x.row_range(range.clone()), y.row_range(range));
        matmul(T::one(), x.t(), y, T::zero(), target);
        sum
    });
    let added = sums.into_iter().reduce(|mut sum, part| {
        sum.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
        sum
    });
    added.unwrap_or_else(|| vec![T::zero(); columns * width])
}

/// Multiplies by the factors of the elements.
pub(crate) fn drop_out<T: Real>(x: &mut [T], dropout: &Dropout) {
    let piece = 1 << 14;
    parallel::for_each_chunk(x, piece, |i, x| dropout.scale((i * piece) as u64, x));
}
