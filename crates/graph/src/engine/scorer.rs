//! The trait of all kinds of scores.

use bochner_numerics::Real;
use bochner_numerics::instructions::Arithmetic;
use std::ops::Range;

/// The edges that lead to one target.
#[derive(Clone, Debug)]
pub(super) struct Arriving<'a> {
    pub(super) target: usize,
    pub(super) sources: &'a [u32],
    /// The places of the edges among all edges.
    pub(super) places: Range<usize>,
}

/// Scores of edges, for all heads.
pub(super) trait Scorer<T: Real>: Sync {
    /// The type of the scores until the largest has been taken off.
    type Score: Real;

    /// Writes the scores of the edges that lead to a target, `[edges, H]`; a term that is the same for all of
    /// these edges may be left out.
    ///
    /// Must be `#[inline(always)]`.
    fn write<A: Arithmetic>(&self, edges: &Arriving, heads: usize, out: &mut [Self::Score]);

    /// The differences of one head's scores to their largest, where that is not finite.
    #[cold]
    fn differences(&self, edges: &Arriving, head: usize) -> Vec<f64> {
        unreachable!("scores of head {head} at {edges:?} beyond the range of their type")
    }

    /// The term that [`write`](Self::write) left out, for each head of a target.
    fn left_out(&self, _edges: &Arriving) -> Option<Vec<f64>> {
        None
    }
}
