//! The Cholesky factor, and what is solved with it.

use crate::check::expect_finite_matrix;
use crate::dense::{self, factor};
use crate::{Error, Jitter};
use bochner_numerics::Mat;
use ndarray::{Array2, ArrayView2};

/// $L L^\top = A$ with $L$ lower-triangular.
#[derive(Clone, Debug)]
pub(crate) struct Cholesky {
    /// $L$ column by column, zero above the diagonal; read row by row it is $L^\top$.
    lower: Vec<f64>,
    order: usize,
    /// What was added to the diagonal of the matrix.
    jitter: f64,
}

impl Cholesky {
    /// The factor of `a` with `noise` and the least jitter that does on its diagonal.
    pub(crate) fn new(a: ArrayView2<f64>, noise: f64, jitter: Jitter) -> Result<Self, Error> {
        expect_finite_matrix("gram", &a)?;
        let order = a.nrows();
        let mut failed = (0.0, 0);
        for jitter in jitter.values() {
            match factor(shifted(a, noise + jitter), order) {
                Ok(lower) => {
                    return Ok(Self {
                        lower,
                        order,
                        jitter,
                    });
                }
                Err(row) => failed = (jitter, row),
            }
        }
        let (jitter, row) = failed;
        let (row, pivot) = pivot(&shifted(a, noise + jitter), order, row);
        Err(Error::NotPositiveDefinite {
            order,
            jitter,
            row,
            pivot,
        })
    }

    pub(crate) fn jitter(&self) -> f64 {
        self.jitter
    }

    /// $\ln \det A$.
    pub(crate) fn log_determinant(&self) -> f64 {
        let diagonal = self.lower.iter().step_by(self.order + 1);
        2.0 * diagonal.map(|l| l.ln()).sum::<f64>()
    }

    /// $L^\top$.
    pub(crate) fn upper(&self) -> Mat<'_, f64> {
        Mat::new(&self.lower, self.order, self.order)
    }

    /// Replaces each row $b$ by $L^{-1} b$.
    pub(crate) fn whiten(&self, rows: &mut [f64]) {
        dense::whiten(&self.lower, self.order, rows);
    }

    /// Replaces each row $b$ by $A^{-1} b$.
    pub(crate) fn solve(&self, rows: &mut [f64]) {
        dense::solve(&self.lower, self.order, rows);
    }

    /// $A^{-1}$.
    pub(crate) fn inverse(&self) -> Array2<f64> {
        let n = self.order;
        let inverse = dense::inverse(&self.lower, n);
        // Only the lower triangle is computed: read row by row, the upper one.
        Array2::from_shape_fn((n, n), |(i, j)| inverse[i.min(j) * n + i.max(j)])
    }
}

fn shifted(a: ArrayView2<f64>, shift: f64) -> Vec<f64> {
    let mut a: Vec<f64> = a.iter().copied().collect();
    let order = a.len().isqrt();
    a.iter_mut().step_by(order + 1).for_each(|d| *d += shift);
    a
}

/// The first row whose pivot is not positive, at most `row`, and its pivot.
fn pivot(a: &[f64], order: usize, row: usize) -> (usize, f64) {
    let leading = a.chunks_exact(order).take(row);
    let leading: Vec<f64> = leading.flat_map(|r| &r[..row]).copied().collect();
    match factor(leading, row) {
        Ok(lower) => {
            let factor = Cholesky {
                lower,
                order: row,
                jitter: 0.0,
            };
            let mut rest = a[row * order..row * order + row].to_vec();
            factor.whiten(&mut rest);
            let explained: f64 = rest.iter().map(|v| v * v).sum();
            (row, a[row * order + row] - explained)
        }
        // Split into other blocks, the smaller matrix can round to an earlier end.
        Err(earlier) => pivot(a, order, earlier),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn a_factor_of_two_rows_is_known() {
        let a = array![[4.0, 2.0], [2.0, 5.0]];
        let factor = Cholesky::new(a.view(), 0.0, Jitter::Fixed(0.0)).unwrap();
        assert_eq!(factor.upper().data(), [2.0, 1.0, 0.0, 2.0]);
        assert!((factor.log_determinant() - 16.0_f64.ln()).abs() < 1e-15);
        let mut rows = [2.0, 5.0, 4.0, 2.0];
        factor.whiten(&mut rows);
        assert_eq!(rows, [1.0, 2.0, 2.0, 0.0]);
        let mut rows = [8.0, 12.0];
        factor.solve(&mut rows);
        assert_eq!(rows, [1.0, 2.0]);
        let inverse = factor.inverse();
        let want = array![[5.0, -2.0], [-2.0, 4.0]] / 16.0;
        assert!((inverse - want).iter().all(|e| e.abs() < 1e-16));
    }

    #[test]
    fn a_factor_of_many_blocks_is_triangular_and_multiplies_back() {
        let n = 150;
        let a = Array2::from_shape_fn((n, n), |(i, j)| {
            (-0.05 * (i as f64 - j as f64).powi(2)).exp()
        });
        let factor = Cholesky::new(a.view(), 0.1, Jitter::Fixed(0.0)).unwrap();
        let upper = Array2::from_shape_vec((n, n), factor.lower.clone()).unwrap();
        let below = upper.indexed_iter().filter(|((i, j), _)| i > j);
        assert!(below.into_iter().all(|(_, &u)| u == 0.0));
        let off = upper.t().dot(&upper) - &a - Array2::<f64>::eye(n) * 0.1;
        assert!(off.iter().all(|o| o.abs() < 1e-14));
        let off = factor.inverse().dot(&(a + Array2::<f64>::eye(n) * 0.1)) - Array2::<f64>::eye(n);
        assert!(off.iter().all(|o| o.abs() < 1e-12));
    }

    #[test]
    fn the_row_and_its_pivot_are_named() {
        // The third row is the sum of the others, less two.
        let a = array![[4.0, 2.0, 6.0], [2.0, 5.0, 7.0], [6.0, 7.0, 11.0]];
        let error = Cholesky::new(a.view(), 0.0, Jitter::Fixed(0.0)).unwrap_err();
        let want = Error::NotPositiveDefinite {
            order: 3,
            jitter: 0.0,
            row: 2,
            pivot: -2.0,
        };
        assert_eq!(error, want);
    }

    #[test]
    fn jitter_is_raised_as_far_as_needed_and_no_further() {
        let a = array![[1.0, 1.0 + 5e-6], [1.0 + 5e-6, 1.0]];
        let jitter = |last| Jitter::Escalating { first: 1e-8, last };
        let factor = Cholesky::new(a.view(), 0.0, jitter(1.0)).unwrap();
        assert!((factor.jitter() - 1e-5).abs() < 1e-15);
        let error = Cholesky::new(a.view(), 0.0, jitter(1e-6)).unwrap_err();
        assert!(
            matches!(error, Error::NotPositiveDefinite { jitter, row: 1, pivot, .. }
            if (jitter - 1e-6).abs() < 1e-15 && pivot < 0.0)
        );
    }

    #[test]
    fn entries_that_are_not_finite_are_named() {
        let a = array![[1.0, 0.0], [0.0, f64::INFINITY]];
        let error = Cholesky::new(a.view(), 0.0, Jitter::Fixed(0.0)).unwrap_err();
        assert!(matches!(error, Error::NotFinite { what: "gram", index, .. } if index == [1, 1]));
    }

    #[test]
    fn nothing_has_an_empty_factor() {
        let none = Array2::zeros((0, 0));
        let factor = Cholesky::new(none.view(), 1.0, Jitter::Fixed(0.0)).unwrap();
        assert_eq!(factor.log_determinant(), 0.0);
        assert_eq!(factor.inverse().dim(), (0, 0));
        factor.solve(&mut []);
    }
}
