//! The square of the objective of the kernel SVD, and how it depends on the scores.

use super::arguments::Arguments;
use super::{PrimalReduction, PrimalTrace, PrimalWeights};
use bochner_numerics::Real;
use bochner_numerics::scaling::{bounded, multiplied};
use ndarray::{Array1, ArrayView1};
use std::ops::Range;

/// The objectives of a forward pass, in double precision.
pub(super) struct Loss {
    eta: f64,
    /// The sums of the squares of all scores of a head, `[B, M, s]`.
    pub(super) squares: Vec<f64>,
    groups: Vec<Group>,
    empty: Vec<bool>,
}

/// Examples whose positions are averaged together.
struct Group {
    examples: Range<usize>,
    /// $h - \tau$.
    objective: f64,
    /// The divisors of the sums over positions and heads, and of those over examples and heads.
    counts: [f64; 2],
}

/// The derivatives of the penalties, times their cotangents, for one example.
#[derive(Clone, Copy, Default)]
pub(super) struct Slope {
    /// Along half the sum of the squares of all $\lambda \odot e$ and $\lambda \odot r$.
    pub(super) squares: f64,
    /// Along the trace of each head.
    pub(super) trace: f64,
}

impl<T: Real> Arguments<'_, T> {
    /// Whether the trace is that of the weights, not of what they make of the data.
    pub(super) fn traces_weights(&self) -> bool {
        let PrimalWeights::Data { trace, .. } = self.settings.weights else {
            return true;
        };
        trace == PrimalTrace::Parameters
    }

    pub(super) fn loss(&self, projections: &[Vec<T>; 2], squares: Vec<f64>) -> Loss {
        let (s, heads) = (self.settings.rank, self.heads);
        let groups: Vec<_> = match self.settings.reduction {
            PrimalReduction::Batch => std::iter::once(0..self.batch).collect(),
            PrimalReduction::Example => (0..self.batch).map(|b| b..b + 1).collect(),
        };
        let trace = |h: usize| -> f64 {
            let [we, wr] = [0, 1].map(|side| match self.traces_weights() {
                true => self.weight(side, h % heads),
                false => self.projection(projections, side, h),
            });
            let products = we.iter().zip(wr).map(|(a, b)| a.as_f64() * b.as_f64());
            bounded(products.map(bounded).sum())
        };
        let half = |h: usize| -> f64 {
            let lambda = &self.lambda[h % heads * s..][..s];
            let all = lambda.iter().zip(&squares[h * s..][..s]);
            all.map(|(l, sum)| 0.5 * bounded(l.as_f64().powi(2)) * sum)
                .sum()
        };
        let of_group = |examples: Range<usize>| {
            let kept = examples.clone().filter(|&b| self.lengths[b] > 0);
            let positions: usize = kept.clone().map(|b| self.lengths[b]).sum();
            let counts = [positions, kept.clone().count()].map(|n| (n.max(1) * heads) as f64);
            let all = kept.flat_map(|b| b * heads..(b + 1) * heads);
            let [h, tau] = [
                all.clone().map(half).sum::<f64>() / counts[0],
                all.map(trace).sum::<f64>() / counts[1],
            ];
            Group {
                examples,
                objective: bounded(bounded(h) - bounded(tau)),
                counts,
            }
        };
        Loss {
            eta: self.settings.eta,
            groups: groups.into_iter().map(of_group).collect(),
            empty: self.lengths.iter().map(|&length| length == 0).collect(),
            squares,
        }
    }
}

impl Loss {
    /// The penalty of each example.
    pub(super) fn penalty<T: Real>(&self) -> Array1<T> {
        let mut penalty = Array1::zeros(self.empty.len());
        for group in &self.groups {
            let value = multiplied(self.eta * group.objective * group.objective, 0);
            let kept = group.examples.clone().filter(|&b| !self.empty[b]);
            kept.for_each(|b| penalty[b] = value);
        }
        penalty
    }

    pub(super) fn slopes<T: Real>(&self, cotangent: ArrayView1<T>) -> Vec<Slope> {
        let mut slopes = vec![Slope::default(); self.empty.len()];
        for group in &self.groups {
            let kept = || group.examples.clone().filter(|&b| !self.empty[b]);
            let g: f64 = kept().map(|b| cotangent[b].as_f64()).sum();
            // A zero cotangent gives a zero slope even where the objective is NaN.
            let slope = match bounded(g) * self.eta {
                0.0 => 0.0,
                g => bounded(bounded(g) * group.objective * 2.0),
            };
            let [squares, trace] = [slope / group.counts[0], -slope / group.counts[1]];
            kept().for_each(|b| slopes[b] = Slope { squares, trace });
        }
        slopes
    }
}
