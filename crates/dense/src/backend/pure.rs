//! The factorisations by faer, on the calling thread, so that results do not depend on the number of
//! threads.

use super::{Singular, clear_above_diagonal};
use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt;
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::linalg::svd::{ComputeSvdVectors, svd_scratch};
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::{MatMut, MatRef, Par};

/// Replaces a symmetric matrix by its factor; an error is the first row whose pivot is not positive.
pub(crate) fn factor(a: &mut [f64], order: usize) -> Result<(), usize> {
    let view = MatMut::from_column_major_slice_mut(a, order, order);
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
    let llt::factor::LltError::NonPositivePivot { index } = match done {
        Ok(_) => {
            clear_above_diagonal(a, order);
            return Ok(());
        }
        Err(error) => error,
    };
    Err(index)
}

/// Replaces each row $b$ by $L^{-1} b$.
pub(crate) fn whiten(lower: &[f64], order: usize, rows: &mut [f64]) {
    solve_lower_triangular_in_place(view(lower, order, order), columns(rows, order), Par::Seq);
}

/// Replaces each row $b$ by $A^{-1} b$.
pub(crate) fn solve(lower: &[f64], order: usize, rows: &mut [f64]) {
    whiten(lower, order, rows);
    let upper = view(lower, order, order).transpose();
    solve_upper_triangular_in_place(upper, columns(rows, order), Par::Seq);
}

/// The lower triangle of $A^{-1}$.
pub(crate) fn inverse(lower: &[f64], order: usize) -> Vec<f64> {
    let mut inverse = vec![0.0; order * order];
    let out = MatMut::from_column_major_slice_mut(&mut inverse, order, order);
    let mut memory = MemBuffer::new(llt::inverse::inverse_scratch::<f64>(order, Par::Seq));
    let stack = MemStack::new(&mut memory);
    llt::inverse::inverse(out, view(lower, order, order), Par::Seq, stack);
    inverse
}

/// The eigenvalues in ascending order and the eigenvectors; `None` if they do not converge.
pub(crate) fn eigen(a: &[f64], order: usize) -> Option<(Vec<f64>, Vec<f64>)> {
    let mut vectors = vec![0.0; order * order];
    let values = values_and(a, order, Some(&mut vectors))?;
    Some((values, vectors))
}

/// The eigenvalues in ascending order; `None` if they do not converge.
pub(crate) fn eigenvalues(a: &[f64], order: usize) -> Option<Vec<f64>> {
    values_and(a, order, None)
}

fn values_and(a: &[f64], order: usize, vectors: Option<&mut Vec<f64>>) -> Option<Vec<f64>> {
    let mut values = vec![0.0; order];
    let wanted = match vectors {
        Some(_) => ComputeEigenvectors::Yes,
        None => ComputeEigenvectors::No,
    };
    let scratch = self_adjoint_evd_scratch::<f64>(order, wanted, Par::Seq, Default::default());
    let mut memory = MemBuffer::new(scratch);
    let done = self_adjoint_evd(
        view(a, order, order),
        DiagMut::from_slice_mut(&mut values),
        vectors.map(|v| MatMut::from_column_major_slice_mut(v, order, order)),
        Par::Seq,
        MemStack::new(&mut memory),
        Default::default(),
    );
    done.ok().map(|()| values)
}

/// The thin decomposition of a matrix of `m` rows; `None` if it does not converge.
pub(crate) fn svd(a: Vec<f64>, m: usize, n: usize) -> Option<Singular> {
    let k = m.min(n);
    let thin = ComputeSvdVectors::Thin;
    let scratch = svd_scratch::<f64>(m, n, thin, thin, Par::Seq, Default::default());
    let (mut u, mut s, mut v) = (vec![0.0; m * k], vec![0.0; k], vec![0.0; n * k]);
    let done = faer::linalg::svd::svd(
        view(&a, m, n),
        DiagMut::from_slice_mut(&mut s),
        Some(MatMut::from_column_major_slice_mut(&mut u, m, k)),
        Some(MatMut::from_column_major_slice_mut(&mut v, n, k)),
        Par::Seq,
        MemStack::new(&mut MemBuffer::new(scratch)),
        Default::default(),
    );
    let turned = (0..n).flat_map(|j| v[j..].iter().step_by(n)).copied();
    done.ok().map(|()| (u, s, turned.collect()))
}

fn view(a: &[f64], rows: usize, columns: usize) -> MatRef<'_, f64> {
    MatRef::from_column_major_slice(a, rows, columns)
}

fn columns(rows: &mut [f64], order: usize) -> MatMut<'_, f64> {
    let count = rows.len() / order.max(1);
    MatMut::from_column_major_slice_mut(rows, order, count)
}
