//! The scores of each head, and their softmax.

use super::Call;
use bochner_numerics::elementary::exp_in_place;
use bochner_numerics::row_major::RowMajor;
use bochner_numerics::{Mat, Real};
use ndarray::Array4;

/// The source of the scores.
pub(super) enum Scores<'a, T> {
    /// A stream of their own, `[B, M, T, 1]`.
    Given(RowMajor<'a, T>),
    /// Queries and the mean of the keys, `[B, M, T, d]` each.
    OfPairs([RowMajor<'a, T>; 2]),
}

/// The scores of a head, and what dropout multiplies each lag with; no factors without dropout.
pub(super) struct Distribution<T> {
    pub(super) scores: Vec<T>,
    pub(super) factors: Vec<T>,
}

/// The mean of rows.
fn mean<T: Real>(rows: Mat<T>) -> Vec<f64> {
    let (n, width) = rows.shape();
    let mut mean = vec![0.0; width];
    for row in rows.data().chunks_exact(width) {
        let all = mean.iter_mut().zip(row);
        all.for_each(|(mean, x)| *mean += x.as_f64() / n as f64);
    }
    mean
}

impl<T: Real> Scores<'_, T> {
    /// `[B, M, T]`.
    pub(super) fn shape(&self) -> [usize; 3] {
        let (Self::Given(x) | Self::OfPairs([x, _])) = self;
        let (batch, heads, time, _) = x.view().dim();
        [batch, heads, time]
    }

    /// The scores of head `h` of all heads.
    pub(super) fn of_head(&self, call: &Call<T>, h: usize) -> Vec<T> {
        match self {
            Self::Given(scores) => call.rows(scores.view(), h).data().to_vec(),
            Self::OfPairs(pair) => {
                let [q, k] = pair.each_ref().map(|x| call.rows(x.view(), h));
                let mean = mean(k);
                let root = (mean.len() as f64).sqrt();
                let score = |q: &[T]| {
                    let terms = q.iter().zip(&mean).map(|(q, k)| q.as_f64() * k);
                    T::of(terms.sum::<f64>() / root)
                };
                q.data().chunks_exact(mean.len()).map(score).collect()
            }
        }
    }

    /// The gradients along what the scores come from, given those along the scores of each head.
    pub(super) fn pull(&self, call: &Call<T>, slopes: &[Vec<T>]) -> Vec<Array4<T>> {
        let Self::OfPairs(pair) = self else {
            return vec![call.by_heads(1, |h, of_scores| of_scores.copy_from_slice(&slopes[h]))];
        };
        let width = pair[0].view().dim().3;
        let root = (width as f64).sqrt();
        let of_queries = call.by_heads(width, |h, of_queries| {
            let mean = mean(call.rows(pair[1].view(), h));
            for (to, slope) in of_queries.chunks_exact_mut(width).zip(&slopes[h]) {
                let slope = slope.as_f64() / root;
                let all = to.iter_mut().zip(&mean);
                all.for_each(|(to, k)| *to = T::of(slope * k));
            }
        });
        let of_keys = call.by_heads(width, |h, of_keys| {
            let (q, n) = (call.rows(pair[0].view(), h), slopes[h].len());
            let mut sum = vec![0.0; width];
            for (q, slope) in q.data().chunks_exact(width).zip(&slopes[h]) {
                let slope = slope.as_f64() / (root * n as f64);
                let all = sum.iter_mut().zip(q);
                all.for_each(|(sum, q)| *sum += slope * q.as_f64());
            }
            let all = of_keys.iter_mut().zip(sum.iter().cycle());
            all.for_each(|(to, &sum)| *to = T::of(sum));
        });
        vec![of_queries, of_keys]
    }
}

/// The softmax of scores.
pub(super) fn softmax<T: Real>(scores: &[T]) -> Vec<T> {
    let highest = scores.iter().copied().fold(T::neg_infinity(), T::max);
    let mut weights: Vec<T> = scores.iter().map(|&z| z - highest).collect();
    exp_in_place(&mut weights);
    let total = T::of(weights.iter().map(|w| w.as_f64()).sum());
    weights.iter_mut().for_each(|w| *w /= total);
    weights
}

impl<T: Real> Distribution<T> {
    /// The dropout factor of lag `l`.
    #[inline]
    pub(super) fn factor(&self, l: usize) -> T {
        self.factors.get(l).copied().unwrap_or(T::one())
    }
}
