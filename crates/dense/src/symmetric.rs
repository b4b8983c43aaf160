//! Eigenvalues and eigenvectors of symmetric matrices.

use crate::Error;
use crate::backend;
use bochner_numerics::argument;
use ndarray::{Array1, Array2, ArrayView2, ShapeBuilder};

/// The eigenvalues and eigenvectors of a symmetric matrix.
///
/// $$A = V \operatorname{diag}(\lambda) V^\top, \qquad V^\top V = I$$
#[derive(Clone, Debug, PartialEq)]
pub struct SymmetricEigen {
    /// The eigenvalues $\lambda$ in ascending order, `[n]`.
    pub values: Array1<f64>,
    /// The eigenvectors $V$ as columns, in the order of the values, `[n, n]`.
    pub vectors: Array2<f64>,
}

/// The eigenvalues and eigenvectors of a symmetric matrix.
///
/// # Shapes
/// `a: [n, n]`; the entries below the diagonal are not read.
///
/// # Errors
/// [`Error::Argument`] if `a` is not square, or not finite where it is read, [`Error::NoConvergence`].
///
/// # Numerics
/// $O(n^3)$ time, by tridiagonal form and divide and conquer. Each eigenvalue is off by a small
/// multiple of rounding of the largest one. Entries are squared: those above 1e150 overflow.
///
/// # Reference
/// Golub, Van Loan, *Matrix Computations*, 4th edition, sections 8.3 and 8.4.
pub fn symmetric_eigen(a: ArrayView2<f64>) -> Result<SymmetricEigen, Error> {
    let (values, vectors) = decomposed(a, backend::eigen)?;
    let order = values.len();
    let vectors = Array2::from_shape_vec((order, order).f(), vectors);
    Ok(SymmetricEigen {
        values: values.into(),
        vectors: vectors.expect("n columns of n entries"),
    })
}

/// The eigenvalues of a symmetric matrix in ascending order, `[n]`.
///
/// # Shapes
/// `a: [n, n]`; the entries below the diagonal are not read.
///
/// # Errors
/// The errors of [`symmetric_eigen`].
///
/// # Numerics
/// The accuracy of [`symmetric_eigen`], at about a third of its cost.
pub fn symmetric_eigenvalues(a: ArrayView2<f64>) -> Result<Array1<f64>, Error> {
    Ok(decomposed(a, backend::eigenvalues)?.into())
}

/// A symmetric matrix column by column, with zeros above the diagonal, where factorisations do not read: `a`
/// row by row, with zeros below the diagonal.
///
/// # Errors
/// [`Error::Argument`] if `a` is not square, or not finite on or above the diagonal.
pub(crate) fn upper_triangle(a: ArrayView2<f64>) -> Result<Vec<f64>, Error> {
    let order = a.nrows();
    argument::shape("a", &[order, order], a.shape())?;
    let mut upper: Vec<f64> = a.iter().copied().collect();
    for (i, row) in upper.chunks_exact_mut(order.max(1)).enumerate() {
        row[..i].fill(0.0);
    }
    argument::finite("a", a.shape(), &upper)?;
    Ok(upper)
}

fn decomposed<R: Default>(
    a: ArrayView2<f64>,
    decompose: impl Fn(&[f64], usize) -> Option<R>,
) -> Result<R, Error> {
    let columns = upper_triangle(a)?;
    let order = a.nrows();
    if order == 0 {
        return Ok(R::default());
    }
    decompose(&columns, order).ok_or(Error::NoConvergence {
        what: "eigenvalues",
        shape: [order, order],
    })
}

/// The symmetric matrix that is meant by one that is symmetric up to rounding: the mean of the matrix
/// and its transpose.
///
/// # Shapes
/// `a: [n, n]`, with at least one row; `name` is what errors call it.
///
/// # Errors
/// [`Error::Argument`] if `a` is empty, not square or not finite, or for a tolerance that is not finite or
/// below zero; [`Error::NotSymmetric`] if an entry and its mirror image differ by more than `tolerance` times
/// the larger of them and one.
///
/// # Example
/// ```
/// use bochner_dense::{Error, symmetrised};
/// use bochner_dense::ndarray::array;
///
/// let a = symmetrised("a", array![[1.0, 0.5], [0.5 + 2e-9, 1.0]].view(), 1e-6)?;
/// assert_eq!(a[[0, 1]], a[[1, 0]]);
/// let skew = symmetrised("a", array![[1.0, 0.5], [0.6, 1.0]].view(), 1e-6);
/// assert!(matches!(skew, Err(Error::NotSymmetric { row: 1, column: 0, .. })));
/// # Ok::<(), Error>(())
/// ```
pub fn symmetrised(
    name: &'static str,
    a: ArrayView2<f64>,
    tolerance: f64,
) -> Result<Array2<f64>, Error> {
    argument::not_empty(name, a.shape())?;
    argument::shape(name, &[a.nrows(), a.nrows()], a.shape())?;
    argument::finite(name, a.shape(), a)?;
    argument::non_negative("tolerance", tolerance)?;
    for ((row, column), &lower) in a.indexed_iter().filter(|((i, j), _)| i > j) {
        let upper = a[[column, row]];
        if (lower - upper).abs() > tolerance * lower.abs().max(upper.abs()).max(1.0) {
            return Err(Error::NotSymmetric {
                name,
                row,
                column,
                lower,
                upper,
            });
        }
    }
    Ok(0.5 * (&a + &a.t()))
}
