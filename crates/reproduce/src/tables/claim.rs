//! What runs must show, and whether they did.

use crate::statistics::Verdict;

/// A statement of the paper with what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its number in the suite, such as C1.
    pub name: &'static str,
    /// What is claimed.
    pub text: &'static str,
    /// Whether it was found again.
    pub verdict: Verdict,
}

/// A property that the machinery must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The property.
    pub name: &'static str,
    /// Whether it was seen.
    pub mark: Mark,
}

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It was seen.
    Passed(String),
    /// It was not.
    Failed(String),
    /// Nothing was there to see it in.
    NotRun(String),
}
