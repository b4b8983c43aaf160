//! The correlation matrix nearest to a symmetric matrix.

use crate::Error;
use crate::distributions::gaussian::ROUNDING;
use bochner_dense::{SymmetricEigen, symmetric_eigen, symmetric_eigenvalues, symmetrised};
use bochner_numerics::argument;
use ndarray::{Array2, ArrayView2};

const ITERATIONS: usize = 10_000;
const TOLERANCE: f64 = 1e-10;

/// The correlation matrix with no eigenvalue below `smallest` that is nearest to a symmetric
/// matrix, in the Frobenius norm.
///
/// The algorithm projects in turn onto the matrices with eigenvalues of at least `smallest` and those
/// with a unit diagonal, with Dykstra's correction on the first. Without the correction the limit would
/// lie in both sets but not be the nearest such matrix.
///
/// # Shapes
/// `a: [M, M]` to `[M, M]`.
///
/// # Errors
/// [`Error::Dense`] if the matrix is empty, not square, not finite or not symmetric; [`Error::Argument`]
/// unless `smallest` is at least 0 and below 1; [`Error::NoConvergence`].
///
/// # Numerics
/// A matrix that already is such a correlation matrix comes back unchanged. Otherwise the entries are within about 1e-9
/// of the nearest matrix's, the diagonal is one, and the bound on the eigenvalues holds within
/// rounding. For a Gaussian copula `smallest` must be positive. The convergence is linear, and each
/// iteration takes an eigendecomposition.
///
/// # Reference
/// Higham, *Computing the nearest correlation matrix: a problem from finance*, IMA Journal of
/// Numerical Analysis 2002, algorithm 3.3.
///
/// # Example
///
/// ```
/// use bochner_copula::ndarray::array;
/// use bochner_copula::{GaussianCopula, nearest_correlation};
///
/// let a = array![[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]];
/// let r = nearest_correlation(a.view(), 1e-6)?;
/// assert!((r[[0, 1]] - 0.7607).abs() < 1e-4 && (r[[0, 2]] - 0.1573).abs() < 1e-4);
/// GaussianCopula::from_correlation(r.view())?;
/// # Ok::<(), bochner_copula::Error>(())
/// ```
pub fn nearest_correlation(a: ArrayView2<f64>, smallest: f64) -> Result<Array2<f64>, Error> {
    let a = symmetrised("a", a, ROUNDING)?;
    argument::rate("smallest", smallest)?;
    let unit = a.diag().iter().all(|&x| x == 1.0);
    if unit && symmetric_eigenvalues(a.view())?[0] >= smallest - rounding(&a) {
        return Ok(a);
    }
    feasible(alternate(a, smallest)?, smallest)
}

fn alternate(a: Array2<f64>, smallest: f64) -> Result<Array2<f64>, Error> {
    let mut y = a;
    let mut correction = Array2::zeros(y.dim());
    let mut residual = f64::INFINITY;
    for _ in 0..ITERATIONS {
        let shifted = &y - &correction;
        let x = with_eigenvalues_from(smallest, shifted.view())?;
        correction = &x - &shifted;
        let mut next = x.clone();
        next.diag_mut().fill(1.0);
        residual = distance(&next, &x).max(distance(&next, &y));
        y = next;
        if residual < TOLERANCE {
            return Ok(x);
        }
    }
    Err(Error::NoConvergence {
        what: "projection to the nearest correlation matrix",
        iterations: ITERATIONS,
        residual,
    })
}

/// The nearest matrix with no eigenvalue below `smallest`.
fn with_eigenvalues_from(smallest: f64, a: ArrayView2<f64>) -> Result<Array2<f64>, Error> {
    let SymmetricEigen { values, vectors } = symmetric_eigen(a)?;
    let raised = values.mapv(|x| x.max(smallest));
    let x = (&vectors * &raised).dot(&vectors.t());
    Ok(0.5 * (&x + &x.t()))
}

/// The matrix, moved by at most about the tolerance so that both conditions hold within rounding.
fn feasible(mut x: Array2<f64>, smallest: f64) -> Result<Array2<f64>, Error> {
    let scale = x.diag().mapv(f64::sqrt);
    x.indexed_iter_mut()
        .for_each(|((i, j), x)| *x /= scale[i] * scale[j]);
    let least = symmetric_eigenvalues(x.view())?[0];
    if least < smallest {
        x *= (1.0 - smallest) / (1.0 - least);
    }
    x.diag_mut().fill(1.0);
    Ok(x)
}

fn distance(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    let square: f64 = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum();
    square.sqrt()
}

/// The error of the eigenvalues of a correlation matrix.
fn rounding(a: &Array2<f64>) -> f64 {
    32.0 * a.nrows() as f64 * f64::EPSILON
}
