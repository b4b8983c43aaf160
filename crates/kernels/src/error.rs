//! What can be wrong with the arguments.

use bochner_numerics::Real;

/// Why a kernel, its features or a bound on their error could not be computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An array does not have the shape that the others imply.
    #[error(
        "`{what}` has shape {got:?} where {expected:?} was expected: inputs, points and lengthscales share their width d, and a cotangent has the shape of its output"
    )]
    ShapeMismatch {
        /// The argument.
        what: &'static str,
        /// The shape that the other arguments imply.
        expected: Vec<usize>,
        /// The shape given.
        got: Vec<usize>,
    },
    /// Something that must be there at least once is not there.
    #[error("`{what}` has shape {got:?}: give at least one, of at least one coordinate")]
    Empty {
        /// The argument.
        what: &'static str,
        /// The shape given.
        got: Vec<usize>,
    },
    /// A parameter lies outside its range.
    #[error("`{what}` is {got}, but must be {required}")]
    OutOfRange {
        /// The parameter.
        what: String,
        /// What holds for a valid value.
        required: &'static str,
        /// The value given.
        got: f64,
    },
}

/// Compares the shape of the argument `what` with the one expected.
pub(crate) fn expect_shape<const N: usize>(
    what: &'static str,
    expected: [usize; N],
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

pub(crate) fn expect_length(what: &'static str, expected: usize, got: usize) -> Result<(), Error> {
    if got == expected {
        return Ok(());
    }
    Err(Error::ShapeMismatch {
        what,
        expected: vec![expected],
        got: vec![got],
    })
}

pub(crate) fn expect_some(what: &'static str, shape: &[usize]) -> Result<(), Error> {
    if shape.contains(&0) {
        let got = shape.to_vec();
        return Err(Error::Empty { what, got });
    }
    Ok(())
}

pub(crate) fn expect_positive<T: Real>(what: &str, value: T) -> Result<(), Error> {
    let holds = value.is_finite() && value > T::zero();
    expect(holds, what, "finite and positive", value)
}

pub(crate) fn expect_finite<T: Real>(what: &str, value: T) -> Result<(), Error> {
    expect(value.is_finite(), what, "finite", value)
}

pub(crate) fn expect<T: Real>(
    holds: bool,
    what: &str,
    required: &'static str,
    got: T,
) -> Result<(), Error> {
    if holds {
        return Ok(());
    }
    Err(Error::OutOfRange {
        what: what.to_owned(),
        required,
        got: got.as_f64(),
    })
}
