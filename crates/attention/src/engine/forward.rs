//! The forward pass of one block of queries.

use super::distance::squared_distances;
use super::product::add_product;
use super::sweep::{Relative, RowBlock, weigh};
use super::{Head, Level, RowStatistics, Score};
use bochner_numerics::operations::record;
use bochner_numerics::{Mat, MatMut, Operations, Real, matmul};
use std::ops::Range;

impl<T: Real> Head<'_, T> {
    /// Outputs `[queries, dv]` and statistics of a block of queries.
    pub(crate) fn forward(&self, queries: Range<usize>) -> (Vec<T>, Vec<RowStatistics<T>>) {
        let mut statistics = self.initial_statistics(queries.clone());
        let mut output = self.accumulate(queries.clone(), &mut statistics);
        if self.mark_level_rows(queries.clone(), &mut statistics) {
            output = self.accumulate(queries, &mut statistics);
        }
        let width = self.value_width();
        record(Operations::multiply_adds(output.len()));
        for (out, row) in output.chunks_exact_mut(width).zip(&statistics) {
            if row.normaliser > T::zero() {
                out.iter_mut().for_each(|x| *x /= row.normaliser);
            }
        }
        (output, statistics)
    }

    /// The normalised weights `[queries, Tk]` of a block of queries, before dropout.
    pub(crate) fn weights(&self, queries: Range<usize>) -> Vec<T> {
        let all = 0..self.right.shape().0;
        let mut statistics = self.initial_statistics(queries.clone());
        let mut weights = self.unnormalised(queries.clone(), &all, &mut statistics, |_, _| {});
        if self.mark_level_rows(queries.clone(), &mut statistics) {
            weights = self.unnormalised(queries, &all, &mut statistics, |_, _| {});
        }
        record(Operations::multiply_adds(weights.len()));
        for (row, statistics) in weights.chunks_exact_mut(all.len().max(1)).zip(&statistics) {
            if statistics.normaliser > T::zero() {
                row.iter_mut().for_each(|x| *x /= statistics.normaliser);
            }
        }
        weights
    }

    /// $\sum_j a_{ij} v_j$ with dropout, and the normalisers.
    fn accumulate(&self, queries: Range<usize>, statistics: &mut [RowStatistics<T>]) -> Vec<T> {
        let width = self.value_width();
        let mut output = vec![T::zero(); queries.len() * width];
        for keys in self.key_blocks(&queries) {
            let mut weights = self.unnormalised(queries.clone(), &keys, statistics, |r, factor| {
                if factor != T::one() {
                    output[r * width..(r + 1) * width]
                        .iter_mut()
                        .for_each(|x| *x *= factor);
                }
            });
            self.drop_out(queries.clone(), &keys, &mut weights);
            add_product(
                Mat::new(&weights, queries.len(), keys.len()),
                self.values.row_range(keys),
                self.finite.values,
                &mut output,
            );
        }
        output
    }

    /// The weights of a block relative to the rows' references; `rescale` is told by how much what
    /// came before must be multiplied.
    pub(super) fn unnormalised(
        &self,
        queries: Range<usize>,
        keys: &Range<usize>,
        statistics: &mut [RowStatistics<T>],
        mut rescale: impl FnMut(usize, T),
    ) -> Vec<T> {
        let mut block = self.raw_scores(queries.clone(), keys);
        if keys.is_empty() {
            return block;
        }
        let mut relative = Relative::new(keys.len());
        for (r, row) in block.chunks_exact_mut(keys.len()).enumerate() {
            let at = RowBlock::new(self, queries.start + r, keys);
            rescale(
                r,
                weigh(self.score, &at, &mut relative, row, &mut statistics[r]),
            );
        }
        block
    }

    /// $x = $ left right$^T$, or the squared distances between the two, `[queries, keys]`.
    pub(super) fn raw_scores(&self, queries: Range<usize>, keys: &Range<usize>) -> Vec<T> {
        let (rows, cols) = (queries.len(), keys.len());
        let (left, right) = (
            self.left.row_range(queries),
            self.right.row_range(keys.clone()),
        );
        if let Score::Periodic { .. } = self.score {
            return squared_distances(left, right);
        }
        let mut block = vec![T::zero(); rows * cols];
        matmul(
            T::one(),
            left,
            right.t(),
            T::zero(),
            MatMut::new(&mut block, rows, cols),
        );
        block
    }

    /// Multiplies weights by their dropout factors.
    fn drop_out(&self, queries: Range<usize>, keys: &Range<usize>, weights: &mut [T]) {
        let Some(dropout) = self.dropout else { return };
        for (i, row) in queries.zip(weights.chunks_exact_mut(keys.len())) {
            for (j, weight) in keys.clone().zip(row) {
                *weight *= dropout.factor(i, j);
            }
        }
    }

    fn initial_statistics(&self, queries: Range<usize>) -> Vec<RowStatistics<T>> {
        let references = match self.score.exponents() {
            None => vec![Level::NONE; queries.len()],
            Some(exponents) => {
                let limits: Vec<usize> = queries.clone().map(|i| self.rows.limit(i)).collect();
                if exponents.has_pairs() || self.rows.matrix(0).is_some() {
                    let row = |(i, &limit)| exponents.reference(i, limit, self.rows.matrix(i));
                    queries.zip(&limits).map(row).collect()
                } else {
                    exponents.running_references(&limits)
                }
            }
        };
        references
            .into_iter()
            .map(|reference| RowStatistics {
                reference,
                largest: T::neg_infinity(),
                normaliser: T::zero(),
                level: false,
            })
            .collect()
    }

    /// Marks the rows whose kept similarities are all exactly zero and resets their normalisers;
    /// true if there are any.
    fn mark_level_rows(&self, queries: Range<usize>, statistics: &mut [RowStatistics<T>]) -> bool {
        let vanished = |(i, row): (usize, &RowStatistics<T>)| {
            row.normaliser == T::zero() && self.rows.keeps_any(i)
        };
        if !queries.clone().zip(&*statistics).any(vanished) {
            return false;
        }
        for (i, row) in queries.zip(statistics) {
            row.level = vanished((i, row));
            row.normaliser = T::zero();
        }
        true
    }
}
