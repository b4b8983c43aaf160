//! What can be wrong with the arguments.

/// Why a feature map or a kernel matrix could not be computed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An array does not have the shape that the others imply.
    #[error(
        "`{what}` has shape {got:?} where {expected:?} was expected: points and inputs share their width d, and a cotangent has the shape of its output"
    )]
    ShapeMismatch {
        /// The argument.
        what: &'static str,
        /// The shape that the other arguments imply.
        expected: Vec<usize>,
        /// The shape given.
        got: Vec<usize>,
    },
    /// There is no spectral point, or the points have no coordinates.
    #[error(
        "`{what}` has shape {got:?}: give at least one spectral point of at least one coordinate"
    )]
    Empty {
        /// The argument.
        what: &'static str,
        /// The shape given.
        got: Vec<usize>,
    },
}

/// Compares the shape of the argument `what` with the one expected.
pub(crate) fn expect_shape(
    what: &'static str,
    expected: [usize; 2],
    got: &[usize],
) -> Result<(), Error> {
    if got == expected {
        return Ok(());
    }
    Err(Error::ShapeMismatch {
        what,
        expected: expected.to_vec(),
        got: got.to_vec(),
    })
}
