//! One lengthscale for all dimensions, or one for each.

use crate::kernel::Parameter;
use bochner_numerics::Real;
use bochner_numerics::argument::{self, ArgumentError};
use bochner_numerics::scaling::bounded;
use serde::{Deserialize, Serialize};

/// The distance at which two points are unlike, for all dimensions together or for each.
///
/// With one lengthscale per dimension (automatic relevance determination), training makes that of
/// a dimension which explains nothing large, and the dimension disappears.
///
/// Written as a number, or as a list of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, remote = "Self")]
pub enum Lengthscale<T> {
    /// One for all dimensions; fits any width. Its parameter is called `lengthscale`.
    Shared(T),
    /// One per dimension, `[d]`. Its parameters are called `lengthscale[0]`, `lengthscale[1]`, ...
    PerDimension(Vec<T>),
}

bochner_numerics::checked_when_read!(Lengthscale<T: Real>, check);

impl<T: Real> Lengthscale<T> {
    pub(crate) fn check(&self) -> Result<(), ArgumentError> {
        argument::not_empty("lengthscale", &[self.values().len()])?;
        let mut parameters = self.parameters().into_iter();
        parameters.try_for_each(|p| argument::positive(p.name, p.value))
    }

    pub(crate) fn values(&self) -> &[T] {
        match self {
            Self::Shared(value) => std::slice::from_ref(value),
            Self::PerDimension(values) => values,
        }
    }

    pub(crate) fn assign(&mut self, values: &[T]) {
        match self {
            Self::Shared(value) => *value = values[0],
            Self::PerDimension(own) => own.copy_from_slice(values),
        }
    }

    pub(crate) fn parameters(&self) -> Vec<Parameter<T>> {
        match self {
            Self::Shared(value) => vec![Parameter::positive("lengthscale", *value)],
            Self::PerDimension(values) => {
                let named = values.iter().enumerate();
                named
                    .map(|(n, &value)| Parameter::positive(format!("lengthscale[{n}]"), value))
                    .collect()
            }
        }
    }

    /// $1/l_n$ of each of `width` dimensions, for inputs `x` of `rows` rows, or the largest number: a
    /// distance of zero must not meet an infinity.
    pub(crate) fn inverse(&self, rows: usize, width: usize) -> Result<Vec<T>, ArgumentError> {
        if let Self::PerDimension(values) = self {
            argument::shape("x", &[rows, values.len()], &[rows, width])?;
        }
        let values = self.values().iter().cycle().take(width);
        Ok(values.map(|&l| bounded(l.recip())).collect())
    }

    /// The gradient along the parameters from that along each dimension's lengthscale.
    pub(crate) fn gather(&self, each: Vec<T>) -> Vec<T> {
        match self {
            Self::Shared(_) => vec![each.into_iter().sum()],
            Self::PerDimension(_) => each,
        }
    }
}
