//! What can be wrong with the arguments.

use bochner_numerics::Real;

/// Why a density, a posterior or a bound could not be computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An array does not have the shape that the others imply.
    #[error(
        "`{what}` has shape {got:?} where {expected:?} was expected: arrays go batch, heads, time or points, width, and weights of layers [out, in]"
    )]
    ShapeMismatch {
        /// The argument.
        what: &'static str,
        /// The shape that the other arguments imply.
        expected: Vec<usize>,
        /// The shape given.
        got: Vec<usize>,
    },
    /// Something that must be there at least once has length zero.
    #[error("`{what}` is zero: give at least one")]
    Empty {
        /// The count or length.
        what: &'static str,
    },
    /// A parameter lies outside its range.
    #[error("`{what}` is {got}, but must be {required}")]
    OutOfRange {
        /// The parameter.
        what: &'static str,
        /// What holds for a valid value.
        required: &'static str,
        /// The value given.
        got: f64,
    },
    /// The steps of a fit left the numbers that can be computed with.
    #[error("step {step} of the fit led to the error {loss}: give a smaller learning rate")]
    Diverged {
        /// The step after which it was seen.
        step: usize,
        /// The squared error there.
        loss: f64,
    },
    /// The kernel refused the inputs or the spectral points.
    #[error(transparent)]
    Kernel(#[from] bochner_kernels::Error),
}

/// Compares the shape of the argument `what` with the one expected.
pub(crate) fn expect_shape(
    what: &'static str,
    expected: &[usize],
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

pub(crate) fn expect_some(what: &'static str, count: usize) -> Result<(), Error> {
    if count == 0 {
        return Err(Error::Empty { what });
    }
    Ok(())
}

pub(crate) fn expect_finite<'a>(
    what: &'static str,
    mut values: impl Iterator<Item = &'a f64>,
) -> Result<(), Error> {
    let wrong = values.find(|x| !x.is_finite());
    wrong.map_or(Ok(()), |&x| expect(false, what, "finite", x))
}

pub(crate) fn expect_positive<T: Real>(what: &'static str, value: T) -> Result<(), Error> {
    expect(
        value.is_finite() && value > T::zero(),
        what,
        "finite and positive",
        value,
    )
}

pub(crate) fn expect_non_negative<T: Real>(what: &'static str, value: T) -> Result<(), Error> {
    expect(
        value.is_finite() && value >= T::zero(),
        what,
        "finite and not negative",
        value,
    )
}

fn expect<T: Real>(
    holds: bool,
    what: &'static str,
    required: &'static str,
    value: T,
) -> Result<(), Error> {
    if holds {
        return Ok(());
    }
    Err(Error::OutOfRange {
        what,
        required,
        got: value.as_f64(),
    })
}
