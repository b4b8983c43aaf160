//! The score of GAT: the LeakyReLU of a sum.

use super::edge_sums::{by_source, by_target};
use super::preactivation::{self, Preactivation, halves};
use super::rows::leaky;
use super::scorer::{Arriving, Scorer};
use super::{Call, Parts, elements};
use crate::Score;
use bochner_numerics::Real;
use bochner_numerics::instructions::Arithmetic;

/// $\mathrm{LeakyReLU}(u_{ij})$.
pub(super) struct Classic<'a, T> {
    u: &'a Preactivation<T>,
    heads: usize,
    slope: T,
}

impl<'a, T: Real> Classic<'a, T> {
    pub(super) fn new(call: &Call<T>, u: &'a Preactivation<T>) -> Self {
        Self {
            u,
            heads: call.shape.heads,
            slope: call.slope(),
        }
    }

    /// The gradients, from those along the scores and through the values.
    pub(super) fn pull_back(
        &self,
        call: &Call<T>,
        mut along_scores: Vec<T>,
        along_values: Vec<T>,
    ) -> Parts<T> {
        let Score::Classic { a } = &call.settings.score else {
            unreachable!("prepared for the classic score");
        };
        super::backward::scale_by_leak(call, self.u, &mut along_scores);
        let along_u = along_scores;
        let (first, second) = halves(&elements(a.view()), call.shape);
        let mut sources = along_values;
        let along_target = by_target(call.graph, &along_u, self.heads);
        let along_source = by_source(call.graph, &along_u, self.heads);
        let (x, y) = (&call.targets, &call.sources);
        let (targets, first) = preactivation::pull_back(x, &first, &along_target, call.shape);
        let second =
            preactivation::add_pull_back(y, &second, &along_source, call.shape, &mut sources);
        let width = call.shape.width;
        let heads = first.chunks_exact(width).zip(second.chunks_exact(width));
        Parts {
            targets,
            sources,
            a: heads
                .flat_map(|(first, second)| [first, second].concat())
                .collect(),
            points: None,
            edges: call.pull_back_edges(&along_u),
        }
    }
}

impl<T: Real> Scorer<T> for Classic<'_, T> {
    type Score = T;

    #[inline(always)]
    fn write<A: Arithmetic>(&self, edges: &Arriving, heads: usize, out: &mut [T]) {
        let scores = out.chunks_exact_mut(heads);
        for ((score, &source), place) in scores.zip(edges.sources).zip(edges.places.clone()) {
            self.u.write(edges.target, source as usize, place, score);
            score.iter_mut().for_each(|u| *u = leaky(*u, self.slope));
        }
    }
}
