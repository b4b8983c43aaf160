//! Jitter: a small number on the diagonal of a covariance matrix, against indefiniteness by rounding.

use crate::Error;
use bochner_dense::{Cholesky, Error as Dense};
use bochner_numerics::{ArgumentError, argument};
use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

/// The number that is added to the diagonal of a covariance matrix before it is factorised.
///
/// In exact arithmetic no jitter is needed; in double precision the smallest eigenvalues of a
/// smooth kernel's matrix are lost to rounding. A jitter $j$ acts as noise of variance $j$ in the
/// likelihood and the posterior, but is not part of the predicted variance of an observation. It is
/// never added silently: every result carries the value used.
///
/// # Example
/// ```
/// use bochner_gp::Jitter;
///
/// let jitter = Jitter::Escalating { first: 1e-10, last: 2e-8 };
/// let tried: Vec<_> = jitter.values().collect();
/// assert_eq!(tried.len(), 3);
/// assert!((tried[2] - 1e-8_f64).abs() < 1e-20);
/// assert_eq!(Jitter::Fixed(0.0).values().collect::<Vec<_>>(), [0.0]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, remote = "Self")]
pub enum Jitter {
    /// This value and no other; zero is allowed.
    Fixed(f64),
    /// The first of `first`, `10 first`, `100 first`, ... with which the matrix is positive
    /// definite, and never more than `last`.
    Escalating {
        /// The value to begin with; positive.
        first: f64,
        /// The largest value that is acceptable; at least `first`.
        last: f64,
    },
}

bochner_numerics::checked_when_read!(Jitter, check);

impl Jitter {
    /// The values that are tried, in order.
    pub fn values(self) -> impl Iterator<Item = f64> {
        let (first, last) = match self {
            Self::Fixed(value) => (value, value),
            Self::Escalating { first, last } => (first, last),
        };
        // Rounding must not exclude a `last` that is a power of ten times `first`.
        let within = move |j: f64| j > 0.0 && j <= last * (1.0 + 1e-12);
        let more = move |&j: &f64| within(10.0 * j).then_some(last.min(10.0 * j));
        std::iter::successors(Some(first), more)
    }

    pub(crate) fn check(self) -> Result<(), ArgumentError> {
        match self {
            Self::Fixed(value) => argument::non_negative("jitter", value),
            Self::Escalating { first, last } => {
                argument::positive("jitter.first", first)?;
                let holds = last.is_finite() && last >= first;
                argument::in_range(holds, "jitter.last", last, "finite and at least `first`")
            }
        }
    }

    /// The factor of `a` with `noise` and the least jitter that suffices on its diagonal, and that
    /// jitter.
    pub(crate) fn factorise(
        self,
        a: ArrayView2<f64>,
        noise: f64,
    ) -> Result<(Cholesky, f64), Error> {
        let mut values = self.values().peekable();
        loop {
            let jitter = values.next().expect("a jitter has at least one value");
            match Cholesky::shifted(a, noise + jitter) {
                Ok(factor) => return Ok((factor, jitter)),
                Err(Dense::NotPositiveDefinite { order, row, pivot }) => {
                    if values.peek().is_none() {
                        return Err(Error::NotPositiveDefinite {
                            order,
                            jitter,
                            row,
                            pivot,
                        });
                    }
                }
                Err(Dense::Argument(ArgumentError::NotFinite { index, got, .. })) => {
                    let (row, column) = (index[0], index[1]);
                    return Err(Error::Covariance { row, column, got });
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}
