//! By faer, on the calling thread, so that results do not depend on the number of threads.

use super::clear_above_diagonal;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt;
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::{MatMut, MatRef, Par};

/// The factor of a symmetric matrix, or the first row whose pivot is not positive.
pub(crate) fn factor(mut a: Vec<f64>, order: usize) -> Result<Vec<f64>, usize> {
    let view = MatMut::from_column_major_slice_mut(&mut a, order, order);
    let scratch =
        llt::factor::cholesky_in_place_scratch::<f64>(order, Par::Seq, Default::default());
    let mut memory = MemBuffer::new(scratch);
    let done = llt::factor::cholesky_in_place(
        view,
        Default::default(),
        Par::Seq,
        MemStack::new(&mut memory),
        Default::default(),
    );
    match done {
        Err(llt::factor::LltError::NonPositivePivot { index }) => Err(index),
        Ok(_) => {
            clear_above_diagonal(&mut a, order);
            Ok(a)
        }
    }
}

/// Replaces each row $b$ by $L^{-1} b$.
pub(crate) fn whiten(lower: &[f64], order: usize, rows: &mut [f64]) {
    solve_lower_triangular_in_place(view(lower, order), columns(rows, order), Par::Seq);
}

/// Replaces each row $b$ by $A^{-1} b$.
pub(crate) fn solve(lower: &[f64], order: usize, rows: &mut [f64]) {
    whiten(lower, order, rows);
    let upper = view(lower, order).transpose();
    solve_upper_triangular_in_place(upper, columns(rows, order), Par::Seq);
}

/// The lower triangle of $A^{-1}$.
pub(crate) fn inverse(lower: &[f64], order: usize) -> Vec<f64> {
    let mut inverse = vec![0.0; order * order];
    let out = MatMut::from_column_major_slice_mut(&mut inverse, order, order);
    let mut memory = MemBuffer::new(llt::inverse::inverse_scratch::<f64>(order, Par::Seq));
    let stack = MemStack::new(&mut memory);
    llt::inverse::inverse(out, view(lower, order), Par::Seq, stack);
    inverse
}

fn view(lower: &[f64], order: usize) -> MatRef<'_, f64> {
    MatRef::from_column_major_slice(lower, order, order)
}

fn columns(rows: &mut [f64], order: usize) -> MatMut<'_, f64> {
    let count = rows.len() / order.max(1);
    MatMut::from_column_major_slice_mut(rows, order, count)
}
