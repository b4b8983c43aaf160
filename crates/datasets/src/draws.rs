//! Draws that no random number library decides.

use crate::SplitMix64;
use bochner_numerics::Seed;

/// Numbers drawn one after the other.
pub(crate) struct Draws(SplitMix64);

impl Draws {
    pub(crate) fn new(seed: Seed) -> Self {
        Self(SplitMix64::new(seed.value()))
    }

    fn next(&mut self) -> u64 {
        self.0.next().expect("the generator has no end")
    }

    /// Draws a number below `end`. All are equally likely, up to one part in $2^{64} / \mathrm{end}$.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    /// Whether something of this probability happens.
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        self.share() < probability
    }

    /// A number from 0 to 1, without 1.
    pub(crate) fn share(&mut self) -> f64 {
        ((self.next() >> 11) as f64) * 2.0_f64.powi(-53)
    }
}
