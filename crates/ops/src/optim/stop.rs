//! The reasons why a minimiser ends.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The reason why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// The projected gradient is within the tolerance.
    Converged,
    /// The value no longer changes: the last ten steps lowered it by at most the tolerance for that, or the next one
    /// should lower it by no more (at least $10^{-10}$ of it), and rounding hides that.
    Flat,
    /// No step along the gradient was accepted though the value should fall: the function has no finite values
    /// nearby, or its gradient is wrong.
    NoStep,
    /// The largest number of steps was taken.
    Steps,
    /// The objective ended the search.
    Observer,
}

impl Stop {
    /// Whether the search ended at a minimum: [`Converged`](Self::Converged) or [`Flat`](Self::Flat).
    pub fn is_converged(self) -> bool {
        matches!(self, Self::Converged | Self::Flat)
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Converged => "converged: the gradient is within the tolerance",
            Self::Flat => "converged: steps no longer change the value",
            Self::NoStep => "not converged: no step along the gradient was accepted",
            Self::Steps => "not converged: the largest number of steps was taken",
            Self::Observer => "not converged: the objective ended the search",
        })
    }
}
