//! What can go wrong, and what to do about it.

use thiserror::Error;

/// An error of this crate.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum Error {
    /// Two arrays do not fit together.
    #[error(
        "{what} must have shape {expected:?}, but has {got:?}; check the order of the axes \
         (batch, heads, draws, width; factors: batch, width, heads, heads)"
    )]
    ShapeMismatch {
        /// The argument.
        what: &'static str,
        /// The shape that the other arguments call for.
        expected: Vec<usize>,
        /// The shape given.
        got: Vec<usize>,
    },
    /// An axis has length zero.
    #[error("{what} has shape {shape:?}; every axis needs at least one element")]
    Empty {
        /// The argument.
        what: &'static str,
        /// Its shape.
        shape: Vec<usize>,
    },
    /// A factor's diagonal is not positive.
    #[error(
        "{what}, matrix {matrix}: the diagonal entry of row {row} must be positive, but is {got}; \
         a correlation factor is lower-triangular with a positive diagonal"
    )]
    Diagonal {
        /// The argument.
        what: &'static str,
        /// Which matrix of the stack.
        matrix: usize,
        /// The row.
        row: usize,
        /// The entry.
        got: f64,
    },
    /// A factor has an entry that is not a finite number.
    #[error(
        "{what}, matrix {matrix}: row {row} has an entry that is not finite; look for an overflow \
         where the factor is made, or for a training step that diverged"
    )]
    NonFinite {
        /// The argument.
        what: &'static str,
        /// Which matrix of the stack.
        matrix: usize,
        /// The row.
        row: usize,
    },
}

/// `Ok` if `got == expected`.
pub(crate) fn same_shape(
    what: &'static str,
    expected: &[usize],
    got: &[usize],
) -> Result<(), Error> {
    if expected == got {
        Ok(())
    } else {
        Err(Error::ShapeMismatch {
            what,
            expected: expected.to_vec(),
            got: got.to_vec(),
        })
    }
}

/// `Ok` if no axis of `shape` has length zero.
pub(crate) fn not_empty(what: &'static str, shape: &[usize]) -> Result<(), Error> {
    if shape.contains(&0) {
        Err(Error::Empty {
            what,
            shape: shape.to_vec(),
        })
    } else {
        Ok(())
    }
}
