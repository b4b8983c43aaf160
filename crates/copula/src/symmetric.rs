//! What a matrix must be before anything is made of it.

use crate::error::{Error, not_empty};
use ndarray::{Array2, ArrayView2};

/// How far a matrix may be from symmetric with ones on its diagonal: what rounding to single
/// precision leaves behind.
pub(crate) const ROUNDING: f64 = 1e-6;

/// The matrix, exactly symmetric, if it was so within rounding.
pub(crate) fn checked_symmetric(
    what: &'static str,
    a: ArrayView2<f64>,
) -> Result<Array2<f64>, Error> {
    check_square(what, a)?;
    for ((row, column), &lower) in a.indexed_iter().filter(|((i, j), _)| i > j) {
        let upper = a[[column, row]];
        if (lower - upper).abs() > ROUNDING * lower.abs().max(upper.abs()).max(1.0) {
            return Err(Error::NotSymmetric {
                what,
                row,
                column,
                lower,
                upper,
            });
        }
    }
    Ok(0.5 * (&a + &a.t()))
}

/// `Ok` if the matrix is square, has at least one row and only finite entries.
fn check_square(what: &'static str, a: ArrayView2<f64>) -> Result<(), Error> {
    not_empty(what, a.shape())?;
    if !a.is_square() {
        let (rows, columns) = a.dim();
        return Err(Error::NotSquare {
            what,
            rows,
            columns,
        });
    }
    check_finite(what, a)
}

/// `Ok` if every entry is finite.
pub(crate) fn check_finite(what: &'static str, a: ArrayView2<f64>) -> Result<(), Error> {
    match a.indexed_iter().find(|(_, x)| !x.is_finite()) {
        Some(((row, column), &got)) => Err(Error::NotFinite {
            what,
            row,
            column,
            got,
        }),
        None => Ok(()),
    }
}
