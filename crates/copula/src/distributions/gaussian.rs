//! The Gaussian copula: a checked correlation matrix and its density.

use crate::Error;
use crate::density::log_density_at_uniforms;
use crate::distributions::config::CopulaConfig;
use crate::factor::{half_neg_log_det, normalise};
use crate::triangular::solve_columns;
use bochner_dense::{Cholesky, Error as Dense, symmetric_eigenvalues, symmetrised};
use bochner_numerics::argument;
use ndarray::{Array1, Array2, ArrayView2, Axis, s};
use serde::{Deserialize, Serialize};

/// The dependence of jointly normal variables, whatever their marginals.
///
/// $$C(u) = \Phi_R\big(\Phi^{-1}(u_1), \dots, \Phi^{-1}(u_M)\big), \qquad
///   \log c(u) = -\tfrac12 \log \det R - \tfrac12 x^\top (R^{-1} - I) x$$
///
/// *where* $x_m = \Phi^{-1}(u_m)$ are the normal scores of the uniform scores *u*, and *R* is a
/// correlation matrix, stored with its triangular factor of unit rows.
///
/// A copula is serialised as a [`CopulaConfig`], the rows of the factor up to the diagonal, because a
/// correlation matrix close to singular would not survive its own rounding. It is checked again when
/// it is read.
///
/// # Example
///
/// ```
/// use bochner_copula::GaussianCopula;
/// use bochner_copula::ndarray::array;
/// use bochner_numerics::Seed;
///
/// let copula = GaussianCopula::from_correlation(array![[1.0, 0.6], [0.6, 1.0]].view())?;
/// let density = copula.density(array![[0.5, 0.5], [0.9, 0.95], [0.9, 0.05]].view())?;
/// assert!((density[0] - 1.25).abs() < 1e-12);
/// assert!(density[1] > 2.0 && density[2] < 0.2);
///
/// let u = copula.sample(100, &mut Seed::new(1).stream("scores"));
/// assert_eq!(u.dim(), (100, 2));
/// # Ok::<(), bochner_copula::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "CopulaConfig", into = "CopulaConfig")]
pub struct GaussianCopula {
    correlation: Array2<f64>,
    factor: Array2<f64>,
}

/// The tolerance of symmetry, of ones on the diagonal and of rows with norm 1: the error of rounding to
/// single precision.
pub(crate) const ROUNDING: f64 = 1e-6;

impl GaussianCopula {
    /// The copula of a correlation matrix.
    ///
    /// # Shapes
    /// `correlation: [M, M]`.
    ///
    /// # Errors
    /// [`Error::Dense`] if the matrix is empty, not square, not finite or not symmetric, and
    /// [`Error::UnitDiagonal`], both beyond 1e-6 (smaller differences are rounding and are removed);
    /// [`Error::NotPositiveDefinite`] if a pivot is not above `M` units of rounding.
    pub fn from_correlation(correlation: ArrayView2<f64>) -> Result<Self, Error> {
        let correlation = symmetrised("correlation", correlation, ROUNDING)?;
        if let Some((row, &got)) = correlation
            .diag()
            .indexed_iter()
            .find(|(_, x)| (*x - 1.0).abs() > ROUNDING)
        {
            let name = "correlation";
            return Err(Error::UnitDiagonal { name, row, got });
        }
        let correlation = with_unit_diagonal(correlation);
        let factor = positive_definite_factor("correlation", correlation.view())?;
        Ok(Self::of_unit_rows(factor))
    }

    /// The copula of a lower-triangular factor, whose rows are divided by their norms.
    ///
    /// # Shapes
    /// `factor: [M, M]`; above the diagonal it is not read.
    ///
    /// # Errors
    /// The errors of [`normalise`].
    ///
    /// # Numerics
    /// Rows whose norm is one within rounding are kept bit for bit.
    pub fn from_factor(factor: ArrayView2<f64>) -> Result<Self, Error> {
        let rows = factor.nrows();
        argument::shape("factor", &[rows, rows], factor.shape())?;
        let mut unit = normalise(factor.insert_axis(Axis(0)))?.index_axis_move(Axis(0), 0);
        let rounding = 2.0 * rows as f64 * f64::EPSILON;
        for m in 0..rows {
            if (unit[[m, m]] / factor[[m, m]] - 1.0).abs() < rounding {
                unit.slice_mut(s![m, ..=m])
                    .assign(&factor.slice(s![m, ..=m]));
            }
        }
        Ok(Self::of_unit_rows(unit))
    }

    fn of_unit_rows(factor: Array2<f64>) -> Self {
        // The correlation comes from the factor in every case, so that a copula that is written and
        // read again is equal.
        let correlation = with_unit_diagonal(factor.dot(&factor.t()));
        Self {
            correlation,
            factor,
        }
    }

    /// The number of coordinates, *M*.
    pub fn dimension(&self) -> usize {
        self.factor.nrows()
    }

    /// The correlation matrix *R* of the normal scores, `[M, M]`.
    pub fn correlation(&self) -> ArrayView2<'_, f64> {
        self.correlation.view()
    }

    /// The lower-triangular factor of unit rows, `[M, M]`.
    pub fn factor(&self) -> ArrayView2<'_, f64> {
        self.factor.view()
    }

    /// The diagonal of the inverse of the correlation matrix, `[M]`: the squared norms of the columns of the factor's
    /// inverse.
    pub(crate) fn precisions(&self) -> Array1<f64> {
        let mut inverse = Array2::eye(self.dimension());
        let columns = inverse.as_slice_mut().expect("in row-major order");
        solve_columns(self.factor(), columns);
        inverse.columns().into_iter().map(|c| c.dot(&c)).collect()
    }

    /// The logarithm of the density at uniform scores.
    ///
    /// # Shapes
    /// `u: [n, M]` to `[n]`.
    ///
    /// # Errors
    /// [`Error::Argument`] for another number of coordinates, [`Error::Score`] for a score not strictly
    /// between 0 and 1.
    ///
    /// # Numerics
    /// The value is $-\infty$ where the quadratic form overflows, which takes an almost singular factor, and
    /// never NaN. Near 1 a score has few digits left: if the survival
    /// probabilities are known, use [`Joint`](crate::Joint).
    pub fn log_density(&self, u: ArrayView2<f64>) -> Result<Array1<f64>, Error> {
        log_density_at_uniforms(self.factor(), u)
    }

    /// The density at uniform scores, `exp` of [`log_density`](Self::log_density).
    ///
    /// # Shapes
    /// `u: [n, M]` to `[n]`.
    ///
    /// # Errors
    /// The errors of [`log_density`](Self::log_density).
    ///
    /// # Numerics
    /// The density is unbounded: for strong dependence in a far corner it may overflow to
    /// infinity, where its logarithm does not.
    pub fn density(&self, u: ArrayView2<f64>) -> Result<Array1<f64>, Error> {
        Ok(self.log_density(u)?.mapv_into(f64::exp))
    }

    /// The divergence from independence, the mutual information of the coordinates in nats.
    ///
    /// $$\mathrm{KL}(c, 1) = -\tfrac12 \log \det R \ge 0$$
    ///
    /// # Numerics
    /// The value is [`half_neg_log_det`] of the factor: zero exactly at independence.
    pub fn kl_to_independence(&self) -> f64 {
        let stack = self.factor().insert_axis(Axis(0));
        half_neg_log_det(stack).expect("a checked factor")[0]
    }
}

/// The Cholesky factor, if its pivots are above `M` units of rounding.
fn positive_definite_factor(name: &'static str, a: ArrayView2<f64>) -> Result<Array2<f64>, Error> {
    let least = a.nrows() as f64 * f64::EPSILON;
    let (row, pivot) = match Cholesky::new(a) {
        Ok(factor) => {
            let lower = factor.lower();
            let mut pivots = lower.diag().into_iter().map(|l| l * l).enumerate();
            match pivots.find(|&(_, pivot)| pivot <= least) {
                Some(small) => small,
                None => return Ok(lower.as_standard_layout().into_owned()),
            }
        }
        Err(Dense::NotPositiveDefinite { row, pivot, .. }) => (row, pivot),
        Err(error) => return Err(error.into()),
    };
    Err(Error::NotPositiveDefinite {
        name,
        row,
        pivot,
        smallest: symmetric_eigenvalues(a)?[0],
    })
}

fn with_unit_diagonal(mut a: Array2<f64>) -> Array2<f64> {
    a.diag_mut().fill(1.0);
    a
}
