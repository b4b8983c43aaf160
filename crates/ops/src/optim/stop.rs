//! The reasons why a minimiser ends.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The reason why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// The projected gradient is within the tolerance.
    Converged,
    /// The step should lower the value by less than $10^{-10}$ of it, and rounding hides that: as close as double
    /// precision comes.
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
            Self::Flat => "converged: no step changes the value by more than its rounding",
            Self::NoStep => "not converged: no step along the gradient was accepted",
            Self::Steps => "not converged: the largest number of steps was taken",
            Self::Observer => "not converged: the objective ended the search",
        })
    }
}
