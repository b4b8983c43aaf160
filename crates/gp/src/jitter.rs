//! What is added to a diagonal to keep rounding from making it indefinite.

use crate::Error;
use crate::check::{expect, expect_not_negative, expect_positive};
use serde::{Deserialize, Serialize};

/// How much is added to the diagonal of a covariance matrix before it is factorised.
///
/// In exact arithmetic no jitter is needed; in double precision the smallest eigenvalues of a
/// smooth kernel's matrix drown in rounding. A jitter $j$ is noise of variance $j$ that the model
/// does not speak of: it enters the likelihood and the posterior, and no predicted variance of an
/// observation. It is never added silently: every result carries the value used.
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
pub enum Jitter {
    /// This much and no other; zero is allowed.
    Fixed(f64),
    /// The least of `first`, `10 first`, `100 first`, ... with which the matrix is positive
    /// definite, and never more than `last`.
    Escalating {
        /// The value to begin with; positive.
        first: f64,
        /// The largest value that is acceptable; at least `first`.
        last: f64,
    },
}

impl Jitter {
    /// The values that are tried, in order.
    pub fn values(self) -> impl Iterator<Item = f64> {
        let (first, last) = match self {
            Self::Fixed(value) => (value, value),
            Self::Escalating { first, last } => (first, last),
        };
        // A bound of some powers of ten must not be missed by rounding.
        let within = move |j: f64| j > 0.0 && j <= last * (1.0 + 1e-12);
        let more = move |&j: &f64| within(10.0 * j).then_some(last.min(10.0 * j));
        std::iter::successors(Some(first), more)
    }

    pub(crate) fn check(self) -> Result<(), Error> {
        match self {
            Self::Fixed(value) => expect_not_negative("jitter", value),
            Self::Escalating { first, last } => {
                expect_positive("jitter.first", first)?;
                let holds = last.is_finite() && last >= first;
                expect(holds, "jitter.last", "finite and at least `first`", last)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_cannot_stand_are_named() {
        let named = |jitter: Jitter, name| {
            let error = jitter.check().unwrap_err();
            assert!(matches!(error, Error::OutOfRange { what, .. } if what == name));
        };
        named(Jitter::Fixed(-1e-9), "jitter");
        named(Jitter::Fixed(f64::NAN), "jitter");
        let escalating = |first, last| Jitter::Escalating { first, last };
        named(escalating(0.0, 1.0), "jitter.first");
        named(escalating(1e-6, 1e-8), "jitter.last");
        named(escalating(1e-6, f64::INFINITY), "jitter.last");
        assert_eq!(escalating(0.5, 0.5).check(), Ok(()));
    }
}
