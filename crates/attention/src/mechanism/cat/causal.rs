//! The causal form, some rows at a time: one head at a time.

use super::scores::{Distribution, softmax};
use bochner_numerics::{Buffers, Mat, MatMut, Real, matmul_in, parallel};
use std::ops::Range;

/// Rows that are weighed at a time.
const BLOCK: usize = 32;

impl<T: Real> Distribution<T> {
    /// The softmax of each row over its own lags, before dropout: the weight of value j in row i, `[rows, rows.end]`.
    fn causal_weights(&self, rows: &Range<usize>) -> Vec<T> {
        let mut weights = vec![T::zero(); rows.len() * rows.end];
        for (i, row) in rows.clone().zip(weights.chunks_exact_mut(rows.end)) {
            let lags = softmax(&self.scores[..=i]);
            let values = row[..=i].iter_mut().rev();
            values.zip(lags).for_each(|(to, weight)| *to = weight);
        }
        weights
    }
}

/// Writes the attended values, `[n, dv]`, over zeros.
///
/// The values of a row's own block are added one by one: the bits of a row depend on no later position.
pub(super) fn attend<T: Real>(
    distribution: &Distribution<T>,
    values: Mat<T>,
    buffers: &Buffers<T>,
    output: &mut [T],
) {
    let width = values.shape().1;
    parallel::for_each_chunk(output, BLOCK * width, |b, output| {
        let first = b * BLOCK;
        let rows = first..first + output.len() / width;
        let mut weights = distribution.causal_weights(&rows);
        for (i, row) in rows.clone().zip(weights.chunks_exact_mut(rows.end)) {
            let lags = row[..=i].iter_mut().rev().enumerate();
            lags.for_each(|(l, weight)| *weight *= distribution.factor(l));
        }
        if first > 0 {
            let past = Mat::new(&weights, rows.len(), rows.end).columns(0..first);
            let target = MatMut::new(output, rows.len(), width);
            let (one, values) = (T::one(), values.row_range(0..first));
            matmul_in(buffers, one, past, values, T::zero(), target);
        }
        let outputs = output.chunks_exact_mut(width);
        for ((i, row), output) in rows
            .clone()
            .zip(weights.chunks_exact(rows.end))
            .zip(outputs)
        {
            for (j, &weight) in (first..=i).zip(&row[first..]) {
                let value = output.iter_mut().zip(values.row(j));
                value.for_each(|(to, &x)| *to += weight * x);
            }
        }
    });
}

/// The gradient along the scores; adds that along the values, given `g` along `output`.
pub(super) fn pull<T: Real>(
    distribution: &Distribution<T>,
    values: Mat<T>,
    (g, output): (Mat<T>, Mat<T>),
    buffers: &Buffers<T>,
    of_values: &mut [T],
) -> Vec<T> {
    let ((n, width), one) = (values.shape(), T::one());
    let mut of_scores = vec![T::zero(); n];
    for first in (0..n).step_by(BLOCK) {
        let rows = first..(first + BLOCK).min(n);
        let (count, end) = (rows.len(), rows.end);
        let mut weights = distribution.causal_weights(&rows);
        let mut products = buffers.any(count * end);
        let target = MatMut::new(&mut products, count, end);
        let (g_rows, seen) = (g.row_range(rows.clone()), values.row_range(0..end));
        matmul_in(buffers, one, g_rows, seen.t(), T::zero(), target);
        let pairs = weights
            .chunks_exact_mut(end)
            .zip(products.chunks_exact(end));
        for (i, (weights, products)) in rows.zip(pairs) {
            let delta: T = g
                .row(i)
                .iter()
                .zip(output.row(i))
                .map(|(&g, &o)| g * o)
                .sum();
            for (j, (weight, &product)) in weights[..=i].iter_mut().zip(products).enumerate() {
                let factor = distribution.factor(i - j);
                of_scores[i - j] += *weight * (factor * product - delta);
                *weight *= factor;
            }
        }
        let weights = Mat::new(&weights, count, end);
        let target = MatMut::new(&mut of_values[..end * width], end, width);
        matmul_in(buffers, one, weights.t(), g_rows, one, target);
    }
    of_scores
}
