//! The kinds of scores.

/// The raw score of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raw {
    /// The inner product $q \cdot k$.
    Product,
    /// The squared distance $|q - k|^2$.
    SquaredDistance,
}

/// The kind of a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The logarithm of a weight; minus infinity hides the pair.
    Logit,
    /// The weight itself; 0 hides the pair.
    Weight,
}
