//! The square of the objective of the kernel SVD, and how it depends on the scores.

use super::PrimalReduction;
use super::call::Call;
use bochner_numerics::Real;
use ndarray::{Array1, ArrayView1};

/// The objectives of a forward pass, in double precision.
pub(super) struct Loss {
    eta: f64,
    /// The sums of the squares of all scores of a head, `[B, M, s]`.
    pub(super) squares: Vec<f64>,
    groups: Vec<Group>,
}

/// Examples whose positions are averaged together.
struct Group {
    /// The examples that are not empty.
    examples: Vec<usize>,
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

impl<T: Real> Call<'_, T> {
    pub(super) fn loss(&self, projections: &[Vec<T>; 2], squares: Vec<f64>) -> Loss {
        let (s, heads) = (self.settings.rank, self.heads);
        let trace = |h: usize| -> f64 {
            let [we, wr] = [0, 1].map(|side| match self.settings.traces_weights() {
                true => self.weight(side, h % heads),
                false => self.projection(projections, side, h),
            });
            let products = we.iter().zip(wr).map(|(a, b)| a.as_f64() * b.as_f64());
            products.sum()
        };
        let half = |h: usize| -> f64 {
            let all = self.lambda_of(h).iter().zip(&squares[h * s..][..s]);
            all.map(|(l, sum)| 0.5 * l.as_f64().powi(2) * sum).sum()
        };
        let of_group = |examples: Vec<usize>| {
            let positions: usize = examples.iter().map(|&b| self.lengths[b]).sum();
            let counts = [positions, examples.len()].map(|n| (n.max(1) * heads) as f64);
            let all = examples.iter().flat_map(|b| b * heads..(b + 1) * heads);
            let h = all.clone().map(half).sum::<f64>() / counts[0];
            Group {
                objective: h - all.map(trace).sum::<f64>() / counts[1],
                examples,
                counts,
            }
        };
        let kept = (0..self.batch).filter(|&b| self.lengths[b] > 0);
        let groups = match self.settings.reduction {
            PrimalReduction::Batch => vec![of_group(kept.collect())],
            PrimalReduction::Example => kept.map(|b| of_group(vec![b])).collect(),
        };
        Loss {
            eta: self.settings.eta,
            groups,
            squares,
        }
    }
}

impl Loss {
    /// The penalty of each of `batch` examples.
    pub(super) fn penalty<T: Real>(&self, batch: usize) -> Array1<T> {
        let mut penalty = Array1::zeros(batch);
        for group in &self.groups {
            let value = T::of(self.eta * group.objective * group.objective);
            group.examples.iter().for_each(|&b| penalty[b] = value);
        }
        penalty
    }

    pub(super) fn slopes<T: Real>(&self, cotangent: ArrayView1<T>) -> Vec<Slope> {
        let mut slopes = vec![Slope::default(); cotangent.len()];
        for group in &self.groups {
            let g: f64 = group.examples.iter().map(|&b| cotangent[b].as_f64()).sum();
            let slope = 2.0 * g * self.eta * group.objective;
            let [squares, trace] = [slope / group.counts[0], -slope / group.counts[1]];
            let slope = Slope { squares, trace };
            group.examples.iter().for_each(|&b| slopes[b] = slope);
        }
        slopes
    }
}
