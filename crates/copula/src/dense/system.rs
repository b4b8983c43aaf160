//! By the system's LAPACK. Its threads are its own: `OPENBLAS_NUM_THREADS` sets their number.

use super::triangular;
use ndarray::{Array1, Array2, ArrayView2, s};
use ndarray_linalg::{Diag, Eigh, Lapack, MatrixLayout, UPLO};

/// As [`triangular::cholesky`], which is asked about everything that is hardly positive definite:
/// it knows the pivot, and LAPACK does not.
pub(crate) fn cholesky(a: ArrayView2<f64>) -> Result<Array2<f64>, (usize, f64)> {
    let size = a.nrows();
    // Row by row a symmetric matrix reads as column by column, and its upper factor as the lower.
    let mut l: Vec<f64> = a.iter().copied().collect();
    let done = f64::cholesky(rows_as_columns(size, size), UPLO::Upper, &mut l);
    let mut l = Array2::from_shape_vec((size, size), l).expect("as many as there were");
    let positive = |i: usize| l[[i, i]].powi(2) > 2.0 * size as f64 * f64::EPSILON * a[[i, i]];
    if done.is_err() || !(0..size).all(positive) {
        return triangular::cholesky(a);
    }
    l.indexed_iter_mut()
        .filter(|((i, j), _)| j > i)
        .for_each(|(_, x)| *x = 0.0);
    Ok(l)
}

/// Replaces `x` by `L^-1 x`, as [`triangular::solve`], which divides by what LAPACK refuses to.
pub(crate) fn solve(l: ArrayView2<f64>, x: &mut [f64]) {
    let leading = l.slice(s![..x.len(), ..x.len()]);
    let columns: Vec<f64> = leading.t().iter().copied().collect();
    if !solve_column(&columns, x) {
        triangular::solve(l, x);
    }
}

/// The eigenvalues of a symmetric matrix in increasing order, and the eigenvectors as columns.
pub(crate) fn eigen(a: ArrayView2<f64>) -> (Array1<f64>, Array2<f64>) {
    a.eigh(UPLO::Lower).expect("finite entries")
}

/// Whether the diagonal has no zero; otherwise `x` is as it was.
fn solve_column(columns: &[f64], x: &mut [f64]) -> bool {
    let size = x.len();
    let (square, column) = (rows_as_columns(size, size), rows_as_columns(size, 1));
    // LAPACK complains about matrices without rows.
    size == 0
        || f64::solve_triangular(square, column, UPLO::Lower, Diag::NonUnit, columns, x).is_ok()
}

fn rows_as_columns(rows: usize, columns: usize) -> MatrixLayout {
    let count = |n: usize| i32::try_from(n).expect("more rows than memory could hold");
    MatrixLayout::F {
        col: count(columns),
        lda: count(rows),
    }
}
