//! Which experiments there are.

use crate::tables::{nodes, regression};
use crate::{Error, complexity, propositions};
use std::fmt;
use std::str::FromStr;

/// An experiment that can be asked for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SuiteName {
    /// The propositions, on random cases.
    Propositions,
    /// Table 1, the complexity of the attention weights.
    Complexity,
    /// Table 5, node classification.
    Nodes,
    /// Table 4, regression.
    Regression,
}

impl SuiteName {
    /// All, in the order in which they are run: the longest last.
    pub const ALL: [Self; 4] = [
        Self::Propositions,
        Self::Complexity,
        Self::Nodes,
        Self::Regression,
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Propositions => propositions::SUITE,
            Self::Complexity => complexity::SUITE,
            Self::Nodes => nodes::SUITE,
            Self::Regression => regression::SUITE,
        }
    }
}

impl fmt::Display for SuiteName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SuiteName {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|suite| suite.name() == name)
            .ok_or_else(|| Error::InvalidOption {
                option: "SUITE",
                given: name.to_owned(),
                expected: Self::ALL.map(Self::name).join(", "),
            })
    }
}
