//! The forward pass of one block of queries.

use super::distance::squared_distances;
use super::output::normalise;
use super::product::add_product;
use super::sweep::{Loudest, Weigh};
use super::{Head, Level, OutputRows, RowBlock, RowStatistics, blocks, multiply_finite};
use crate::Blocks;
use crate::normaliser::{Normaliser, Open};
use crate::score::Score;
use bochner_numerics::memory::Unwritten;
use bochner_numerics::product::Right;
use bochner_numerics::{Buffer, Mat, MatMut, Real, instructions, matmul_in};
use std::ops::Range;

/// The weights of a block of queries.
pub(super) struct BlockWeights<T: Real> {
    /// `[queries, keys]`.
    pub(super) weights: Buffer<T>,
    /// All others have none.
    pub(super) keys: Range<usize>,
    pub(super) statistics: Vec<RowStatistics<T>>,
}

impl<T: Real> BlockWeights<T> {
    /// Writes them into rows of `Tk` zeros.
    pub(super) fn write(&self, rows: &mut [T], time: usize) {
        if self.keys.is_empty() {
            return;
        }
        let own = self.weights.chunks_exact(self.keys.len());
        for (row, own) in rows.chunks_exact_mut(time).zip(own) {
            row[self.keys.clone()].copy_from_slice(own);
        }
    }
}

impl<T: Real, S: Score<T>> Head<'_, T, S> {
    /// Attention from the queries from `first` on, one for each row of `out`.
    pub(crate) fn forward(&self, first: usize, out: OutputRows<T>) {
        let OutputRows { output, statistics } = out;
        let Blocks {
            queries: size,
            keys,
        } = self.blocks;
        let queries = first..first + statistics.len();
        let most = size.min(queries.len()) * keys.min(self.seen(&queries).len());
        let mut scratch = self.workspace.numbers.any(most);
        let outputs = output.chunks(size * self.value_width());
        let pieces = outputs.zip(statistics.chunks_mut(size));
        for (queries, (output, statistics)) in blocks(queries, size).zip(pieces) {
            self.forward_block(queries, output, statistics, &mut scratch);
        }
    }

    fn forward_block(
        &self,
        queries: Range<usize>,
        output: Unwritten<T>,
        statistics: &mut [RowStatistics<T>],
        scratch: &mut [T],
    ) {
        let output = output.zeros();
        self.set_references(queries.clone(), statistics);
        self.accumulate(queries.clone(), statistics, output, scratch);
        let blocks = self.key_blocks(&queries);
        if self.lower_references(queries.clone(), blocks, statistics) {
            output.fill(T::zero());
            self.accumulate(queries.clone(), statistics, output, scratch);
        }
        self.finish_rows(queries, statistics);
        normalise(output, self.value_width(), statistics);
        multiply_finite(output, self.unit);
    }

    /// The normalised weights of a block of queries, before dropout, on the keys that any of them sees.
    pub(super) fn weights(&self, queries: Range<usize>) -> BlockWeights<T> {
        let all = self.seen(&queries);
        let mut statistics = vec![RowStatistics::new(Level::NONE); queries.len()];
        self.set_references(queries.clone(), &mut statistics);
        let mut weights = self.unnormalised(queries.clone(), &all, &mut statistics);
        let blocks = std::iter::once(all.clone()).filter(|all| !all.is_empty());
        if self.lower_references(queries.clone(), blocks, &mut statistics) {
            weights = self.unnormalised(queries.clone(), &all, &mut statistics);
        }
        self.finish_rows(queries, &mut statistics);
        normalise(&mut weights, all.len().max(1), &statistics);
        BlockWeights {
            weights,
            keys: all,
            statistics,
        }
    }

    /// Adds $\sum_j a_{ij} v_j$ with dropout to the output, and to the normalisers.
    fn accumulate(
        &self,
        queries: Range<usize>,
        statistics: &mut [RowStatistics<T>],
        output: &mut [T],
        scratch: &mut [T],
    ) {
        let (rows, width) = (queries.len(), self.value_width());
        let mut factors = self.workspace.numbers.any(rows);
        for keys in self.key_blocks(&queries) {
            let weights = &mut scratch[..rows * keys.len()];
            self.weigh(queries.clone(), &keys, statistics, weights, &mut factors);
            for (out, &factor) in output.chunks_exact_mut(width).zip(&factors) {
                if factor != T::one() {
                    out.iter_mut().for_each(|x| *x *= factor);
                }
            }
            self.drop_out(queries.clone(), &keys, weights);
            add_product(
                &self.workspace.numbers,
                Mat::new(weights, rows, keys.len()),
                self.values.row_range(keys),
                self.finite.values,
                output,
            );
        }
    }

    /// The weights of a block relative to the rows' references.
    pub(super) fn unnormalised(
        &self,
        queries: Range<usize>,
        keys: &Range<usize>,
        statistics: &mut [RowStatistics<T>],
    ) -> Buffer<T> {
        let numbers = &self.workspace.numbers;
        let mut weights = numbers.any(queries.len() * keys.len());
        let mut factors = numbers.any(queries.len());
        if !keys.is_empty() {
            self.weigh(queries, keys, statistics, &mut weights, &mut factors);
        }
        weights
    }

    /// Writes the weights of a block, and by how much what its rows have summed up before must be
    /// multiplied.
    fn weigh(
        &self,
        queries: Range<usize>,
        keys: &Range<usize>,
        statistics: &mut [RowStatistics<T>],
        block: &mut [T],
        factors: &mut [T],
    ) {
        self.raw_scores(queries.clone(), keys, block);
        instructions::run(Weigh {
            head: self,
            queries,
            keys,
            block,
            statistics,
            factors,
        });
    }

    /// $x = $ left right$^T$, or the squared distances between the two, `[queries, keys]`.
    pub(super) fn raw_scores(&self, queries: Range<usize>, keys: &Range<usize>, block: &mut [T]) {
        if let Some([left, right]) = self.ternary {
            let number = |x: i32| T::of(x.into());
            return left.products(queries, right, keys.clone(), number, block);
        }
        let (rows, cols) = (queries.len(), keys.len());
        let left = self.left.row_range(queries);
        let right = match &self.packed.right {
            Some(panels) => Right::from(panels.columns(keys.clone())),
            None => {
                let right = self.right.row_range(keys.clone());
                if !S::RAW.is_product() {
                    return squared_distances(left, right, &self.workspace.numbers, block);
                }
                right.t().into()
            }
        };
        let target = MatMut::new(block, rows, cols);
        let numbers = &self.workspace.numbers;
        matmul_in(numbers, T::one(), left, right, T::zero(), target);
    }

    /// Multiplies weights by their dropout factors.
    pub(super) fn drop_out(&self, queries: Range<usize>, keys: &Range<usize>, weights: &mut [T]) {
        let Some(dropout) = self.dropout else { return };
        for (i, row) in queries.zip(weights.chunks_exact_mut(keys.len())) {
            dropout.scale(i, keys.start, row);
        }
    }

    fn set_references(&self, queries: Range<usize>, statistics: &mut [RowStatistics<T>]) {
        let Some(exponents) = self.exponents else {
            return statistics.fill(RowStatistics::new(Level::NONE));
        };
        if let Some(bias) = self.bias {
            for (i, row) in queries.zip(statistics) {
                let (keys, kept) = (self.rows.range(i), self.rows.matrix(i));
                let counts = |j: usize| kept.is_none_or(|kept| kept[j]);
                let reference = exponents.biased_reference(bias.row(i), keys, counts);
                *row = RowStatistics::new(reference);
            }
        } else if !self.rows.keep_prefixes() {
            for (i, row) in queries.zip(statistics) {
                let (keys, kept) = (self.rows.range(i), self.rows.matrix(i));
                let counts = |j: usize| kept.is_none_or(|kept| kept[j]);
                let reference = exponents.reference(keys, counts);
                *row = RowStatistics::new(reference);
            }
        } else {
            let limits = queries.map(|i| self.rows.limit(i));
            let references = exponents.running_references(limits);
            for (row, reference) in statistics.iter_mut().zip(references) {
                *row = RowStatistics::new(reference);
            }
        }
    }

    /// Changes the normalisers of rows that have met a key into what their sums are divided by.
    fn finish_rows(&self, queries: Range<usize>, statistics: &mut [RowStatistics<T>]) {
        for (i, row) in queries.zip(statistics) {
            if row.normaliser > T::zero() {
                let (keys, all) = (self.rows.range(i).len(), self.rows.matrix(i).is_none());
                let is_settled = S::Norm::settle(row, keys, all);
                let open = (!is_settled).then(|| self.open_row(i, row.reference));
                S::Norm::finish(row, open.as_ref());
            }
        }
    }

    /// All keys of one query at once.
    fn open_row(&self, i: usize, reference: Level) -> Open<T> {
        let query = i..i + 1;
        let keys = self.seen(&query);
        let mut scores = self.workspace.numbers.any(keys.len());
        self.raw_scores(query, &keys, &mut scores);
        RowBlock::new(self, i, &keys).fill_masked(&mut scores, T::neg_infinity());
        let mut differences = Vec::new();
        if let Some(exponents) = self.exponents {
            let bias = self.bias.map(|bias| bias.row(i));
            exponents.differences(bias, keys, reference, |_, piece| {
                differences.extend_from_slice(piece);
            });
        }
        Open {
            scores,
            differences,
        }
    }

    /// Deals with the rows whose weights have vanished or nearly so beside their loudest key: they become relative
    /// to the loudest of the keys whose similarity is not zero, or are marked as level if there is none. If there
    /// are such rows, all normalisers are reset, and `true` is returned.
    fn lower_references(
        &self,
        queries: Range<usize>,
        blocks: impl Iterator<Item = Range<usize>>,
        statistics: &mut [RowStatistics<T>],
    ) -> bool {
        // Below this, factors may have been too small for all their digits.
        let faint = T::min_positive_value() / T::epsilon();
        let vanished = |(i, row): (usize, &RowStatistics<T>)| {
            row.normaliser <= faint && self.rows.keeps_any(i)
        };
        if !queries.clone().zip(&*statistics).any(vanished) {
            return false;
        }
        for (i, row) in queries.clone().zip(&mut *statistics) {
            row.level = vanished((i, row));
            row.normaliser = T::zero();
        }
        let mut references = (self.workspace.pool()).filled(queries.len(), Level::NONE);
        for keys in blocks {
            let mut raw = self.workspace.numbers.any(queries.len() * keys.len());
            self.raw_scores(queries.clone(), &keys, &mut raw);
            instructions::run(Loudest {
                head: self,
                queries: queries.clone(),
                keys: &keys,
                raw: &mut raw,
                statistics,
                references: &mut references,
            });
        }
        for (row, &reference) in statistics.iter_mut().zip(references.iter()) {
            if row.level && reference != Level::NONE {
                (row.level, row.reference) = (false, reference);
            }
        }
        true
    }
}
