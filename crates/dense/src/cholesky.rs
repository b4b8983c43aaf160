//! The Cholesky factor, and what is solved with it.

use crate::Error;
use crate::backend;
use crate::symmetric::upper_triangle;
use bochner_numerics::argument;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, ShapeBuilder};

/// The Cholesky factor of a symmetric positive definite matrix.
///
/// $$A = L L^\top$$
///
/// *where* $L$ is lower-triangular with a positive diagonal.
///
/// # Numerics
/// $n^3 / 3$ multiplications for the factor, $n^2$ for each row that is solved for.
///
/// # Reference
/// Golub, Van Loan, *Matrix Computations*, 4th edition, section 4.2.
#[derive(Clone, Debug, PartialEq)]
pub struct Cholesky {
    /// $L$ column by column, zero above the diagonal.
    lower: Vec<f64>,
    order: usize,
}

impl Cholesky {
    /// Factorises a symmetric matrix.
    ///
    /// # Shapes
    /// `a: [n, n]`; the entries below the diagonal are not read. A matrix without rows has an empty
    /// factor.
    ///
    /// # Errors
    /// [`Error::Argument`] if `a` is not square, or not finite where it is read,
    /// [`Error::NotPositiveDefinite`].
    pub fn new(a: ArrayView2<f64>) -> Result<Self, Error> {
        Self::shifted(a, 0.0)
    }

    /// Factorises $A + s I$.
    ///
    /// # Shapes
    /// `a: [n, n]`; the entries below the diagonal are not read.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn shifted(a: ArrayView2<f64>, shift: f64) -> Result<Self, Error> {
        let order = a.nrows();
        let shifted = || {
            let mut a = upper_triangle(a)?;
            a.iter_mut().step_by(order + 1).for_each(|d| *d += shift);
            Ok::<_, Error>(a)
        };
        let mut lower = shifted()?;
        match backend::factor(&mut lower, order) {
            Ok(()) => Ok(Self { lower, order }),
            Err(row) => {
                let (row, pivot) = failing_pivot(&shifted()?, order, row);
                Err(Error::NotPositiveDefinite { order, row, pivot })
            }
        }
    }

    /// The number of rows.
    pub fn order(&self) -> usize {
        self.order
    }

    /// The factor $L$, `[n, n]`, column by column in memory; zero above the diagonal.
    pub fn lower(&self) -> ArrayView2<'_, f64> {
        ArrayView2::from_shape((self.order, self.order).f(), &self.lower)
            .expect("n columns of n entries")
    }

    /// $\ln \det A$.
    pub fn log_determinant(&self) -> f64 {
        let diagonal = self.lower.iter().step_by(self.order + 1);
        2.0 * diagonal.map(|l| l.ln()).sum::<f64>()
    }

    /// Replaces each row $b$ by $L^{-1} b$, which has unit covariance if $b$ has the covariance $A$.
    ///
    /// # Shapes
    /// `rows: [m, n]`.
    ///
    /// # Errors
    /// [`Error::Argument`] if the rows do not have `n` entries.
    ///
    /// # Numerics
    /// Rows in row-major order are solved where they stand, others in a copy.
    pub fn whiten(&self, rows: ArrayViewMut2<f64>) -> Result<(), Error> {
        self.in_place(rows, backend::whiten)
    }

    /// Replaces each row $b$ by $A^{-1} b$.
    ///
    /// # Shapes
    /// `rows: [m, n]`.
    ///
    /// # Errors
    /// [`Error::Argument`] if the rows do not have `n` entries.
    ///
    /// # Numerics
    /// Rows in row-major order are solved where they stand, others in a copy. The relative error is a
    /// small multiple of the condition of $A$ in units of rounding.
    pub fn solve(&self, rows: ArrayViewMut2<f64>) -> Result<(), Error> {
        self.in_place(rows, backend::solve)
    }

    /// $A^{-1}$, `[n, n]`, exactly symmetric.
    ///
    /// # Numerics
    /// $2 n^3 / 3$ multiplications.
    pub fn inverse(&self) -> Array2<f64> {
        let n = self.order;
        let lower = backend::inverse(&self.lower, n);
        Array2::from_shape_fn((n, n), |(i, j)| lower[i.min(j) * n + i.max(j)])
    }

    fn in_place(
        &self,
        mut rows: ArrayViewMut2<f64>,
        solve: impl Fn(&[f64], usize, &mut [f64]),
    ) -> Result<(), Error> {
        argument::shape("rows", &[rows.nrows(), self.order], rows.shape())?;
        if let Some(rows) = rows.as_slice_mut() {
            solve(&self.lower, self.order, rows);
            return Ok(());
        }
        let mut copy: Vec<f64> = rows.iter().copied().collect();
        solve(&self.lower, self.order, &mut copy);
        rows.iter_mut().zip(copy).for_each(|(row, x)| *row = x);
        Ok(())
    }
}

/// The first row whose pivot is not positive, at most `row`, and its pivot.
fn failing_pivot(a: &[f64], order: usize, row: usize) -> (usize, f64) {
    let leading = a.chunks_exact(order).take(row);
    let mut lower: Vec<f64> = leading.flat_map(|r| &r[..row]).copied().collect();
    match backend::factor(&mut lower, row) {
        Ok(()) => {
            let above = a[row..].iter().step_by(order);
            let mut rest: Vec<f64> = above.take(row).copied().collect();
            backend::whiten(&lower, row, &mut rest);
            let explained: f64 = rest.iter().map(|v| v * v).sum();
            (row, a[row * order + row] - explained)
        }
        // The smaller matrix is split into other blocks, and may fail in an earlier row by rounding.
        Err(earlier) => failing_pivot(a, order, earlier),
    }
}
