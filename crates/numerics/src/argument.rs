//! Faults of arguments, in one spelling for the whole workspace.

use crate::Real;
use std::borrow::Cow;
use std::fmt;

/// The name of an argument as its caller wrote it, such as `"k"` or `"batch 3 of the lengths"`.
pub type Name = Cow<'static, str>;

/// The fault of an argument.
///
/// The error of every crate of the workspace has one variant that holds it, so that a caller meets one
/// spelling of "wrong shape" whichever crate noticed it. The functions of this module make it.
///
/// ```
/// use bochner_numerics::argument::{self, ArgumentError};
///
/// /// The mean of some numbers.
/// fn mean(x: &[f64]) -> Result<f64, ArgumentError> {
///     argument::not_empty("x", &[x.len()])?;
///     argument::finite("x", &[x.len()], x)?;
///     Ok(x.iter().sum::<f64>() / x.len() as f64)
/// }
///
/// assert_eq!(mean(&[1.0, 3.0])?, 2.0);
/// let error = mean(&[1.0, f64::NAN]).unwrap_err();
/// assert_eq!(error.to_string(), "`x` is NaN at [1], but must be finite: remove or replace that element");
/// # Ok::<(), ArgumentError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ArgumentError {
    /// An array does not have the shape that its description or the other arguments imply.
    Shape {
        /// The argument.
        name: Name,
        /// The shape that is needed.
        expected: Vec<usize>,
        /// The shape that was given.
        got: Vec<usize>,
    },
    /// An array has no elements, or a count is zero.
    Empty {
        /// The argument.
        name: Name,
        /// Its shape; without axes where the argument is a count.
        shape: Vec<usize>,
    },
    /// A number lies outside its range.
    OutOfRange {
        /// The argument.
        name: Name,
        /// The number that was given.
        got: f64,
        /// The numbers that are allowed, in words that follow "must be".
        allowed: Cow<'static, str>,
    },
    /// An element of an array is NaN or infinite.
    NotFinite {
        /// The argument.
        name: Name,
        /// The first such element's index.
        index: Vec<usize>,
        /// Its value.
        got: f64,
    },
    /// An index points behind the end of what it counts.
    Index {
        /// The argument that holds the index.
        name: Name,
        /// The index.
        got: usize,
        /// The number of entries that the index may point to.
        len: usize,
    },
}

impl ArgumentError {
    /// The argument that is wrong.
    pub fn name(&self) -> &str {
        match self {
            Self::Shape { name, .. }
            | Self::Empty { name, .. }
            | Self::OutOfRange { name, .. }
            | Self::NotFinite { name, .. }
            | Self::Index { name, .. } => name,
        }
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape {
                name,
                expected,
                got,
            } if expected.len() == 1 && got.len() == 1 => write!(
                f,
                "`{name}` has length {}, but must have length {}: check the sizes of what it is used with",
                got[0], expected[0]
            ),
            Self::Shape {
                name,
                expected,
                got,
            } => write!(
                f,
                "`{name}` has shape {got:?}, but must have {expected:?}: check the order of its axes and \
                 the sizes of what it is used with"
            ),
            Self::Empty { name, shape } if shape.is_empty() => {
                write!(f, "`{name}` is 0, but must be at least 1")
            }
            Self::Empty { name, shape } => write!(
                f,
                "`{name}` has shape {shape:?} and so no elements: give at least one along every axis"
            ),
            // Debug prints tiny and huge numbers with an exponent, Display with hundreds of digits; the number
            // may be a count.
            Self::OutOfRange { name, got, allowed } => {
                let got = format!("{got:?}");
                let got = got.strip_suffix(".0").unwrap_or(&got);
                write!(f, "`{name}` is {got}, but must be {allowed}")
            }
            Self::NotFinite { name, index, got } => write!(
                f,
                "`{name}` is {got:?} at {index:?}, but must be finite: remove or replace that element"
            ),
            Self::Index { name, got, len } => write!(
                f,
                "`{name}` holds the index {got}, but must stay below {len}: indices count from 0"
            ),
        }
    }
}

impl std::error::Error for ArgumentError {}

/// Refuses an array of another shape.
///
/// # Errors
/// [`ArgumentError::Shape`].
pub fn shape(
    name: impl Into<Name>,
    expected: &[usize],
    got: &[usize],
) -> Result<(), ArgumentError> {
    if got == expected {
        return Ok(());
    }
    Err(ArgumentError::Shape {
        name: name.into(),
        expected: expected.to_vec(),
        got: got.to_vec(),
    })
}

/// Refuses an array without elements.
///
/// # Errors
/// [`ArgumentError::Empty`].
pub fn not_empty(name: impl Into<Name>, shape: &[usize]) -> Result<(), ArgumentError> {
    if !shape.contains(&0) {
        return Ok(());
    }
    Err(ArgumentError::Empty {
        name: name.into(),
        shape: shape.to_vec(),
    })
}

/// Refuses a count of zero.
///
/// # Errors
/// [`ArgumentError::Empty`].
pub fn at_least_one(name: impl Into<Name>, count: usize) -> Result<(), ArgumentError> {
    if count > 0 {
        return Ok(());
    }
    Err(ArgumentError::Empty {
        name: name.into(),
        shape: Vec::new(),
    })
}

/// Refuses a number for which a condition does not hold; `allowed` follows "must be".
///
/// # Errors
/// [`ArgumentError::OutOfRange`].
pub fn in_range<T: Real>(
    holds: bool,
    name: impl Into<Name>,
    got: T,
    allowed: impl Into<Cow<'static, str>>,
) -> Result<(), ArgumentError> {
    if holds {
        return Ok(());
    }
    Err(out_of_range(name, got, allowed))
}

/// Requires a count from 1 to `most`.
///
/// # Errors
/// [`ArgumentError::Empty`] for 0, [`ArgumentError::OutOfRange`] above `most`.
pub fn at_most(name: &'static str, count: usize, most: usize) -> Result<(), ArgumentError> {
    at_least_one(name, count)?;
    in_range(count <= most, name, count as f64, format!("at most {most}"))
}

/// The error of [`in_range`], for a number that is known not to be allowed.
pub fn out_of_range<T: Real>(
    name: impl Into<Name>,
    got: T,
    allowed: impl Into<Cow<'static, str>>,
) -> ArgumentError {
    ArgumentError::OutOfRange {
        name: name.into(),
        got: got.as_f64(),
        allowed: allowed.into(),
    }
}

/// Refuses a number of heads that does not divide the width of their layer.
///
/// # Errors
/// [`ArgumentError::OutOfRange`].
pub fn heads(heads: usize, width: usize) -> Result<(), ArgumentError> {
    let divides = heads > 0 && width.is_multiple_of(heads);
    let allowed = format!("at least 1 and a divisor of the layer's width, {width}");
    in_range(divides, "heads", heads as f64, allowed)
}

/// Returns the allowed counts of something that is either shared by all or one for each, in words.
pub fn one_or(all: usize) -> String {
    match all {
        1 => "1".to_owned(),
        _ => format!("1 or {all}"),
    }
}

/// Refuses a number that is not finite and above zero.
///
/// # Errors
/// [`ArgumentError::OutOfRange`].
pub fn positive<T: Real>(name: impl Into<Name>, got: T) -> Result<(), ArgumentError> {
    let holds = got.is_finite() && got > T::zero();
    in_range(holds, name, got, "finite and above 0")
}

/// Refuses a number that is not finite and at least zero.
///
/// # Errors
/// [`ArgumentError::OutOfRange`].
pub fn non_negative<T: Real>(name: impl Into<Name>, got: T) -> Result<(), ArgumentError> {
    let holds = got.is_finite() && got >= T::zero();
    in_range(holds, name, got, "finite and at least 0")
}

/// Refuses a rate, such as that of dropout or of a running mean, outside $[0, 1)$.
///
/// # Errors
/// [`ArgumentError::OutOfRange`].
pub fn rate(name: impl Into<Name>, got: f64) -> Result<(), ArgumentError> {
    in_range(
        (0.0..1.0).contains(&got),
        name,
        got,
        "at least 0 and below 1",
    )
}

/// Refuses an array with an element that is NaN or infinite; `values` are those of an array of `shape`,
/// in row-major order.
///
/// # Errors
/// [`ArgumentError::NotFinite`] with the first such element's index.
pub fn finite<'a, T: Real>(
    name: impl Into<Name>,
    shape: &[usize],
    values: impl IntoIterator<Item = &'a T>,
) -> Result<(), ArgumentError> {
    let mut values = values.into_iter().enumerate();
    let Some((at, got)) = values.find(|(_, x)| !x.is_finite()) else {
        return Ok(());
    };
    let mut index = vec![0; shape.len()];
    let mut rest = at;
    for (place, &n) in index.iter_mut().zip(shape).rev() {
        (*place, rest) = (rest % n, rest / n);
    }
    Err(ArgumentError::NotFinite {
        name: name.into(),
        index,
        got: got.as_f64(),
    })
}

/// Refuses an index that is not below `len`.
///
/// # Errors
/// [`ArgumentError::Index`].
pub fn index(name: impl Into<Name>, got: usize, len: usize) -> Result<(), ArgumentError> {
    if got < len {
        return Ok(());
    }
    Err(ArgumentError::Index {
        name: name.into(),
        got,
        len,
    })
}

/// Reads and writes settings that are derived with `#[serde(remote = "Self")]`, and refuses what their
/// method `validate` refuses, or another one whose name, or a function, follows the type.
///
/// ```
/// use bochner_numerics::argument::{self, ArgumentError};
/// use serde::de::value::{Error, MapDeserializer};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, Serialize, Deserialize)]
/// #[serde(remote = "Self")]
/// struct Fit { steps: usize }
///
/// impl Fit {
///     fn validate(&self) -> Result<(), ArgumentError> {
///         argument::at_least_one("steps", self.steps)
///     }
/// }
///
/// bochner_numerics::checked_when_read!(Fit);
///
/// let written = MapDeserializer::<_, Error>::new([("steps", 0_u32)].into_iter());
/// let error = <Fit as Deserialize>::deserialize(written).unwrap_err();
/// assert_eq!(error.to_string(), "`steps` is 0, but must be at least 1");
/// ```
#[macro_export]
macro_rules! checked_when_read {
    ($settings:ident $(<$T:ident: $bound:path>)?) => {
        $crate::checked_when_read!($settings $(<$T: $bound>)?, validate);
    };
    ($settings:ident $(<$T:ident: $bound:path>)?, $validate:ident) => {
        $crate::checked_when_read!($settings $(<$T: $bound>)?, |settings| settings.$validate());
    };
    ($settings:ident $(<$T:ident: $bound:path>)?, $check:expr) => {
        impl $(<$T: $bound + serde::Serialize>)? serde::Serialize for $settings $(<$T>)? {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, serializer)
            }
        }

        impl<'de $(, $T: $bound + serde::Deserialize<'de>)?> serde::Deserialize<'de>
            for $settings $(<$T>)?
        {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let check: fn(&Self) -> Result<(), _> = $check;
                let settings = Self::deserialize(deserializer)?;
                check(&settings).map_err(serde::de::Error::custom)?;
                Ok(settings)
            }
        }
    };
}
