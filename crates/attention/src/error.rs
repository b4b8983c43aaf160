//! What can go wrong, and what to do about it.

use thiserror::Error;

/// An error of this crate.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// Two arrays do not fit together.
    #[error(
        "{what} must have shape {expected:?}, but has {got:?}{}",
        order_of_axes(what)
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
    #[error("{what} has no elements along its {axis} axis; every axis needs at least one")]
    Empty {
        /// The argument.
        what: &'static str,
        /// The axis.
        axis: &'static str,
    },
    /// A setting lies outside its range.
    #[error("{name} must be {range}, but is {got}")]
    OutOfRange {
        /// The setting.
        name: &'static str,
        /// What is allowed.
        range: &'static str,
        /// What was given.
        got: f64,
    },
    /// A mechanism cannot do what is asked of it, or two settings do not go together.
    #[error("{what} is not supported; use {instead}")]
    Unsupported {
        /// The combination.
        what: &'static str,
        /// What there is.
        instead: &'static str,
    },
    /// A mask, or the counts of a step, do not fit the sequences.
    #[error("wrong {what}: expected {expected}, got {got}")]
    Mask {
        /// Which part of the mask, or the counts.
        what: &'static str,
        /// What the sequences call for.
        expected: String,
        /// What was given.
        got: String,
    },
    /// A mechanism was given another number of streams than its card names.
    #[error(
        "the mechanism takes {expected} streams, but {got} were given; see `streams` of its card"
    )]
    StreamCount {
        /// How many it takes.
        expected: usize,
        /// How many were given.
        got: usize,
    },
    /// A parameter vector has the wrong length.
    #[error("{mechanism} takes {expected} parameters at this size, but {got} were given")]
    ParameterCount {
        /// The mechanism.
        mechanism: &'static str,
        /// How many it takes.
        expected: usize,
        /// How many were given.
        got: usize,
    },
    /// A saved forward pass of another mechanism or call was given to the backward pass.
    #[error(
        "the forward pass given to {mechanism} is not one of its own; pass what its attend returned"
    )]
    ForeignForward {
        /// The mechanism.
        mechanism: &'static str,
    },
    /// From the feature maps.
    #[error(transparent)]
    Kernels(#[from] bochner_kernels::Error),
    /// From the spectral densities.
    #[error(transparent)]
    Spectral(#[from] bochner_spectral::Error),
    /// From the copula.
    #[error(transparent)]
    Copula(#[from] bochner_copula::Error),
    /// From the layers on the tape.
    #[cfg(feature = "dfdx")]
    #[error(transparent)]
    Nn(bochner_nn::Error),
}

#[cfg(feature = "dfdx")]
impl From<bochner_nn::Error> for Error {
    /// Takes this crate's own error back out, if it is one that came through the tape.
    fn from(error: bochner_nn::Error) -> Self {
        error.into_operation_error().unwrap_or_else(Self::Nn)
    }
}

/// What is easily mistaken where queries, keys or values do not fit together.
fn order_of_axes(what: &str) -> &'static str {
    match what {
        "q" | "k" | "v" => "; check the order of the axes (batch, heads, time, width)",
        _ => "",
    }
}

/// `Ok` if `value` is finite and positive.
pub(crate) fn positive(name: &'static str, value: f64) -> Result<(), Error> {
    if value > 0.0 && value.is_finite() {
        Ok(())
    } else {
        Err(Error::OutOfRange {
            name,
            range: "finite and above 0",
            got: value,
        })
    }
}

/// `Ok` if `value` is finite and not negative.
pub(crate) fn non_negative(name: &'static str, value: f64) -> Result<(), Error> {
    if value >= 0.0 && value.is_finite() {
        Ok(())
    } else {
        Err(Error::OutOfRange {
            name,
            range: "finite and at least 0",
            got: value,
        })
    }
}

/// `Ok` if `value` can be added to a squared kernel, which is 1 at most.
pub(crate) fn floor(value: f64) -> Result<(), Error> {
    if (0.0..=1.0).contains(&value) {
        Ok(())
    } else {
        Err(Error::OutOfRange {
            name: "floor",
            range: "from 0 to 1",
            got: value,
        })
    }
}

/// `Ok` if a kernel can repeat itself after `value`: distances are measured in its power of two,
/// which has to be a number in single precision as well.
pub(crate) fn period(value: f64) -> Result<(), Error> {
    if (1e-30..=1e30).contains(&value) {
        Ok(())
    } else {
        Err(Error::OutOfRange {
            name: "period",
            range: "from 1e-30 to 1e30",
            got: value,
        })
    }
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
