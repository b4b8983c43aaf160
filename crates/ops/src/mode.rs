//! The mode of a forward pass: training or evaluation.

use bochner_numerics::Seed;

/// The mode of a forward pass.
///
/// A training pass carries its seed: the same seed gives the same dropout masks, whatever the
/// number of threads. Take a new one for each step, `seed.nth(step)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Evaluation, without dropout.
    Evaluation,
    /// Training, with dropout masks drawn from the seed.
    Training(Seed),
}

impl Mode {
    /// The mode of a part, with a seed of its own.
    pub fn child(self, name: &str) -> Self {
        match self {
            Self::Evaluation => self,
            Self::Training(seed) => Self::Training(seed.child(name)),
        }
    }

    /// The mode of the part with the given number, with a seed of its own.
    pub fn nth(self, index: u64) -> Self {
        match self {
            Self::Evaluation => self,
            Self::Training(seed) => Self::Training(seed.nth(index)),
        }
    }
}
