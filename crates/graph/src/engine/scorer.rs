//! What every kind of score can do.

use bochner_numerics::Real;
use bochner_numerics::instructions::Arithmetic;
use std::ops::Range;

/// The edges that lead to one target.
#[derive(Clone, Debug)]
pub(super) struct Arriving<'a> {
    pub(super) target: usize,
    pub(super) sources: &'a [u32],
    /// Where they stand among all edges.
    pub(super) places: Range<usize>,
}

/// Scores of edges, for all heads.
pub(super) trait Scorer<T: Real>: Sync {
    /// What scores are kept in until the largest has been taken off.
    type Score: Real;

    /// Writes the scores of the edges that lead to a target, `[edges, H]`; what is the same for all of
    /// them may be left out.
    ///
    /// Must be `#[inline(always)]`.
    fn write<A: Arithmetic>(&self, edges: &Arriving, heads: usize, out: &mut [Self::Score]);

    /// The differences of one head's scores to their largest, where that is not finite.
    #[cold]
    fn differences(&self, edges: &Arriving, head: usize) -> Vec<f64> {
        unreachable!("scores of head {head} at {edges:?} beyond the range of their type")
    }

    /// What [`write`](Self::write) left out, for each head of a target.
    fn left_out(&self, _edges: &Arriving) -> Option<Vec<f64>> {
        None
    }
}
