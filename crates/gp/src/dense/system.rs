//! By the system's LAPACK. Its threads are its own: `OPENBLAS_NUM_THREADS` sets their number.

use super::clear_above_diagonal;
use ndarray_linalg::{Diag, Lapack, MatrixLayout, UPLO};

/// What LAPACK can only say of arguments that are not what it was told.
const FITS: &str = "a factor with a positive diagonal and as many rows as it was told";

/// The factor of a symmetric matrix, or the first row whose pivot is not positive.
pub(crate) fn factor(a: Vec<f64>, order: usize) -> Result<Vec<f64>, usize> {
    let mut lower = a.clone();
    if in_place(&mut lower, order) {
        return Ok(lower);
    }
    // ndarray-linalg keeps the failing row to itself. Where a leading block fails, every larger
    // one does.
    let (mut positive, mut failing) = (0, order);
    while failing - positive > 1 {
        let middle = positive + (failing - positive) / 2;
        if in_place(&mut leading(&a, order, middle), middle) {
            positive = middle;
        } else {
            failing = middle;
        }
    }
    Err(failing - 1)
}

/// Replaces each row $b$ by $L^{-1} b$.
pub(crate) fn whiten(lower: &[f64], order: usize, rows: &mut [f64]) {
    if rows.is_empty() {
        return;
    }
    let columns = layout(order, rows.len() / order);
    let square = layout(order, order);
    f64::solve_triangular(square, columns, UPLO::Lower, Diag::NonUnit, lower, rows).expect(FITS);
}

/// Replaces each row $b$ by $A^{-1} b$.
pub(crate) fn solve(lower: &[f64], order: usize, rows: &mut [f64]) {
    for row in rows.chunks_exact_mut(order.max(1)) {
        f64::solve_cholesky(layout(order, order), UPLO::Lower, lower, row).expect(FITS);
    }
}

/// The lower triangle of $A^{-1}$.
pub(crate) fn inverse(lower: &[f64], order: usize) -> Vec<f64> {
    let mut inverse = lower.to_vec();
    if order > 0 {
        f64::inv_cholesky(layout(order, order), UPLO::Lower, &mut inverse).expect(FITS);
    }
    inverse
}

/// Whether the matrix was positive definite, and so became its factor.
fn in_place(a: &mut [f64], order: usize) -> bool {
    if order == 0 {
        return true;
    }
    let done = f64::cholesky(layout(order, order), UPLO::Lower, a).is_ok();
    clear_above_diagonal(a, order);
    done
}

fn leading(a: &[f64], order: usize, size: usize) -> Vec<f64> {
    let columns = a.chunks_exact(order).take(size);
    columns
        .flat_map(|column| &column[..size])
        .copied()
        .collect()
}

fn layout(rows: usize, columns: usize) -> MatrixLayout {
    let count = |n: usize| i32::try_from(n).expect("more rows than memory could hold");
    MatrixLayout::F {
        col: count(columns),
        lda: count(rows),
    }
}
