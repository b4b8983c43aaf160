//! The factorisations by the system's LAPACK, on threads of its own: `OPENBLAS_NUM_THREADS` sets their
//! number.

use super::{Singular, clear_above_diagonal};
use ndarray_linalg::{Diag, JobSvd, Lapack, MatrixLayout, UPLO};

/// LAPACK fails here only if its arguments are not what this file passes.
const FITS: &str = "a factor with a positive diagonal and as many rows as LAPACK was told";

/// Replaces a symmetric matrix by its factor; an error is the first row whose pivot is not positive.
pub(crate) fn factor(a: &mut [f64], order: usize) -> Result<(), usize> {
    let original = a.to_vec();
    if in_place(a, order) {
        return Ok(());
    }
    // ndarray-linalg does not return the failing row. If a leading block fails, every larger block
    // fails.
    let (mut positive, mut failing) = (0, order);
    while failing - positive > 1 {
        let middle = positive + (failing - positive) / 2;
        if in_place(&mut leading(&original, order, middle), middle) {
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

/// The eigenvalues in ascending order and the eigenvectors; `None` if they do not converge.
pub(crate) fn eigen(a: &[f64], order: usize) -> Option<(Vec<f64>, Vec<f64>)> {
    let mut vectors = a.to_vec();
    let values = f64::eigh(true, layout(order, order), UPLO::Lower, &mut vectors);
    values.ok().map(|values| (values, vectors))
}

/// The eigenvalues in ascending order; `None` if they do not converge.
pub(crate) fn eigenvalues(a: &[f64], order: usize) -> Option<Vec<f64>> {
    f64::eigh(false, layout(order, order), UPLO::Lower, &mut a.to_vec()).ok()
}

/// The thin decomposition of a matrix of `m` rows; `None` if it does not converge.
pub(crate) fn svd(mut a: Vec<f64>, m: usize, n: usize) -> Option<Singular> {
    let parts = f64::svddc(layout(m, n), JobSvd::Some, &mut a).ok()?;
    Some((parts.u?, parts.s, parts.vt?))
}

/// Replaces a positive definite matrix by its factor; false if the matrix is not positive definite.
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
