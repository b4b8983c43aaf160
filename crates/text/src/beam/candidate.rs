//! The order of continuations.

use std::cmp::Ordering;

/// A continuation of a live hypothesis. A lesser one comes first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) log_prob: f64,
    pub(super) token: usize,
    /// The place of the hypothesis that it continues.
    pub(super) place: usize,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        // No sum of logarithms that begins with zero is a negative zero.
        let by_probability = other.log_prob.total_cmp(&self.log_prob);
        by_probability.then((self.token, self.place).cmp(&(other.token, other.place)))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Candidate {}
