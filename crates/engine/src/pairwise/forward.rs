//! The forward pass of some queries.

use super::distance::Points;
use super::terms::Terms;
use super::{Head, STRIPE};
use crate::call::blocks;
use crate::normaliser::{Block, Row};
use crate::{Kind, Raw};
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::memory::Unwritten;
use bochner_numerics::operations::{Operations, record};
use bochner_numerics::product::Right;
use bochner_numerics::{Buffer, Mat, MatMut, Real, matmul_in};
use std::ops::Range;

/// Rows of the output, `[rows, dv]`, to be written, with their states.
pub(crate) struct OutputRows<'a, T> {
    pub(crate) output: Unwritten<'a, T>,
    pub(crate) rows: &'a mut [Row<T>],
}

impl<T: Real> OutputRows<'_, T> {
    /// The first rows, and the others.
    pub(crate) fn split_at(self, rows: usize) -> (Self, Self) {
        let width = self.output.len() / self.rows.len().max(1);
        let (output, more_output) = self.output.split_at(rows * width);
        let (rows, more_rows) = self.rows.split_at_mut(rows);
        (
            Self { output, rows },
            Self {
                output: more_output,
                rows: more_rows,
            },
        )
    }

    /// Writes rows that see no key.
    pub(crate) fn clear(self) {
        self.output.zeros();
        self.rows.fill(Row::new(0.0));
    }
}

/// The weights of a block of queries.
pub(super) struct BlockWeights<T: Real> {
    /// `[queries, keys]`.
    pub(super) weights: Buffer<T>,
    /// The keys that have weights.
    pub(super) keys: Range<usize>,
}

impl<T: Real> Head<'_, T> {
    /// Attends from the queries from `first` on, one for each row of `out`. Returns the first row whose weights are not
    /// finite.
    pub(crate) fn forward(&self, first: usize, out: OutputRows<T>) -> Option<usize> {
        let OutputRows { output, rows } = out;
        let size = self.blocks.queries;
        let queries = first..first + rows.len();
        let most = size.min(queries.len()) * self.blocks.keys.min(self.seen(&queries).len());
        let mut scratch = self.workspace.numbers.any(most);
        let outputs = output.chunks(size * self.value_width());
        let pieces = outputs.zip(rows.chunks_mut(size));
        let mut fault = None;
        for (queries, (output, rows)) in blocks(queries, size).zip(pieces) {
            let output = output.zeros();
            self.start_rows(queries.clone(), rows);
            self.accumulate(queries.clone(), rows, output, &mut scratch);
            self.lower_references(queries.clone(), rows, output, &mut scratch);
            self.finish_rows(queries.clone(), rows);
            self.divide(output, self.value_width(), rows);
            let found = queries.zip(rows).find(|(_, row)| !row.sum.is_finite());
            fault = fault.or(found.map(|(i, _)| i));
        }
        fault
    }

    /// Returns the normalised weights of a block of queries, before dropout, on the keys that any of them sees.
    pub(super) fn weights(&self, queries: Range<usize>) -> BlockWeights<T> {
        let keys = self.seen(&queries);
        let mut rows = vec![Row::new(0.0); queries.len()];
        self.start_rows(queries.clone(), &mut rows);
        let mut weights = self.unnormalised(queries.clone(), &keys, &mut rows);
        for r in 0..rows.len() {
            let query = queries.start + r..queries.start + r + 1;
            if let Some(row) = self.lowered(query.start, &rows[r]) {
                rows[r] = row;
                let own = self.unnormalised(query, &keys, &mut rows[r..r + 1]);
                weights[r * keys.len()..][..keys.len()].copy_from_slice(&own);
            }
        }
        self.finish_rows(queries, &mut rows);
        self.divide(&mut weights, keys.len().max(1), &rows);
        BlockWeights { weights, keys }
    }

    /// Adds $\sum_j a_{ij} v_j$ with dropout to the output, and to the sums of the rows.
    fn accumulate(
        &self,
        queries: Range<usize>,
        rows: &mut [Row<T>],
        output: &mut [T],
        scratch: &mut [T],
    ) {
        let (count, width) = (queries.len(), self.value_width());
        let mut rescale = self.workspace.numbers.any(count);
        for keys in self.key_blocks(&queries) {
            let weights = &mut scratch[..count * keys.len()];
            self.weigh(queries.clone(), &keys, rows, weights, &mut rescale);
            for (out, &factor) in output.chunks_exact_mut(width).zip(&rescale) {
                if factor != T::one() {
                    out.iter_mut().for_each(|x| *x *= factor);
                }
            }
            if let Some(dropout) = self.dropout {
                for (i, row) in queries.clone().zip(weights.chunks_exact_mut(keys.len())) {
                    dropout.scale(i, keys.start, row);
                }
            }
            let weights = Mat::new(weights, count, keys.len());
            let target = MatMut::new(output, count, width);
            let (numbers, one) = (&self.workspace.numbers, T::one());
            matmul_in(
                numbers,
                one,
                weights,
                self.values.row_range(keys),
                one,
                target,
            );
        }
    }

    /// Returns the weights of a block relative to the state of its rows.
    pub(crate) fn unnormalised(
        &self,
        queries: Range<usize>,
        keys: &Range<usize>,
        rows: &mut [Row<T>],
    ) -> Buffer<T> {
        let numbers = &self.workspace.numbers;
        let mut weights = numbers.any(queries.len() * keys.len());
        let mut rescale = numbers.any(queries.len());
        if !keys.is_empty() {
            self.weigh(queries, keys, rows, &mut weights, &mut rescale);
        }
        weights
    }

    /// Writes the weights of a block, and the factors that earlier sums of its rows must be multiplied with.
    fn weigh(
        &self,
        queries: Range<usize>,
        keys: &Range<usize>,
        rows: &mut [Row<T>],
        block: &mut [T],
        rescale: &mut [T],
    ) {
        self.products(queries.clone(), keys, block);
        let mut terms = Terms::new(self, keys.len());
        let mut start = 0;
        while start < rows.len() {
            let stripe = start..self.stripe_end(rows, start, keys.len());
            start = stripe.end;
            let scores = &mut block[stripe.start * keys.len()..stripe.end * keys.len()];
            let first = queries.start + stripe.start;
            let own = first..first + stripe.len();
            self.complete(own.clone(), keys, scores, None);
            if !self.kernel.scores_are_raw() {
                self.kernel.scores(&self.tile(first, keys), scores);
            }
            let rows = &mut rows[stripe.clone()];
            let factors = self.add_terms(own, keys, rows, scores, &mut terms);
            let rescale = &mut rescale[stripe];
            self.normaliser.absorb(Block {
                scores,
                keys: keys.len(),
                factors,
                rows,
                rescale,
            });
        }
    }

    /// Returns the end of the stripe that begins at row `start`: rows that have one reference, and as many pairs as the
    /// first cache has room for.
    pub(super) fn stripe_end(&self, rows: &[Row<T>], start: usize, keys: usize) -> usize {
        let most = match self.has_row_factors() {
            true => 1,
            false => (STRIPE / keys).max(1),
        };
        let rows = &rows[start..];
        let same = rows
            .iter()
            .take_while(|row| row.reference == rows[0].reference);
        start + same.take(most).count()
    }

    /// Adds terms to the logits of a stripe, or returns the factors of its weights, and hides what the mask hides.
    pub(super) fn add_terms<'t>(
        &self,
        queries: Range<usize>,
        keys: &Range<usize>,
        rows: &[Row<T>],
        scores: &mut [T],
        terms: &'t mut Terms<T>,
    ) -> Option<&'t [T]> {
        let reference = rows.first()?.reference;
        let is_logit = self.normaliser.kind() == Kind::Logit;
        let factors = match self.has_row_factors() {
            true => Some(terms.of_row(self, queries.start, keys, reference)),
            false => terms.shared(self, keys, reference),
        };
        let (hidden, per_unit) = (self.hidden(), T::of(self.normaliser.ln_base().recip()));
        let each = queries.zip(scores.chunks_exact_mut(keys.len())).zip(rows);
        for ((i, scores), row) in each {
            if is_logit {
                if let Some(terms) = factors {
                    instructions::run(Add {
                        scores: &mut *scores,
                        terms,
                    });
                }
                if let Some(bias) = self.bias {
                    bias.add_to(i, keys.clone(), per_unit, scores);
                }
            }
            if row.is_level {
                scores.fill(T::one());
            }
            self.rows.fill_hidden(i, keys, scores, hidden);
        }
        factors.filter(|_| !is_logit)
    }

    /// Writes the products of operands, times their factor, `[queries, keys]`.
    pub(super) fn products(&self, queries: Range<usize>, keys: &Range<usize>, block: &mut [T]) {
        let (rows, cols) = (queries.len(), keys.len());
        let factor = match self.kernel.raw() {
            Raw::Product => T::of(self.kernel.scale(self.width)),
            Raw::SquaredDistance => T::of(-2.0),
        };
        let left = self.left.row_range(queries);
        let right = Right::from(self.packed.right.columns(keys.clone()));
        let target = MatMut::new(block, rows, cols);
        matmul_in(
            &self.workspace.numbers,
            factor,
            left,
            right,
            T::zero(),
            target,
        );
    }

    /// Makes raw scores of products: distances, if the kernel asks for these. Adds the near pairs to a list.
    pub(super) fn complete(
        &self,
        queries: Range<usize>,
        keys: &Range<usize>,
        block: &mut [T],
        near: Option<&mut Vec<(usize, usize)>>,
    ) {
        if self.kernel.raw() == Raw::SquaredDistance {
            self.points().distances(queries, keys, block, near);
        }
    }

    pub(super) fn points(&self) -> Points<'_, T> {
        Points {
            left: self.left,
            right: self.right,
            norms: &self.packed.norms,
        }
    }

    /// Finishes the state of rows that have met a key.
    fn finish_rows(&self, queries: Range<usize>, rows: &mut [Row<T>]) {
        for (i, row) in queries.zip(rows) {
            if row.sum > T::zero() {
                let keys = self.rows.range(i).len();
                self.normaliser.finish(row, keys, &mut || self.whole_row(i));
            }
        }
    }

    /// Divides rows of `width` numbers by what their normaliser says; rows that met no key stay what they are.
    fn divide(&self, numbers: &mut [T], width: usize, rows: &[Row<T>]) {
        let divisors = rows.iter().map(|row| match row.sum > T::zero() {
            true => self.normaliser.divisor(row),
            false => T::one(),
        });
        let mut all = self.workspace.numbers.empty(rows.len());
        all.extend(divisors);
        let divisors = all;
        if divisors.iter().any(|&divisor| divisor != T::one()) {
            record(Operations::multiply_adds(numbers.len() + rows.len()));
            instructions::run(Divide {
                numbers,
                width,
                divisors: &divisors,
            });
        }
    }

    /// Returns the scores of a row and all keys that it may see, and these keys.
    pub(super) fn row_scores(&self, i: usize) -> (Buffer<T>, Range<usize>) {
        let query = i..i + 1;
        let keys = self.seen(&query);
        let mut scores = self.workspace.numbers.any(keys.len());
        if !keys.is_empty() {
            self.products(query.clone(), &keys, &mut scores);
            self.complete(query, &keys, &mut scores, None);
            if !self.kernel.scores_are_raw() {
                self.kernel.scores(&self.tile(i, &keys), &mut scores);
            }
        }
        (scores, keys)
    }

    /// Returns all logits of a row, with the terms of keys and bias, in units of the normaliser's base.
    fn whole_row(&self, i: usize) -> Vec<f64> {
        let (mut scores, keys) = self.row_scores(i);
        self.rows
            .fill_hidden(i, &keys, &mut scores, T::neg_infinity());
        let (base, terms) = (self.normaliser.ln_base(), self.row_terms(i, &keys));
        let pairs = scores.iter().zip(&terms);
        pairs.map(|(x, term)| x.as_f64() + term / base).collect()
    }

    /// Computes the rows again whose weights have vanished, or nearly so, beside their loudest key.
    fn lower_references(
        &self,
        queries: Range<usize>,
        rows: &mut [Row<T>],
        output: &mut [T],
        scratch: &mut [T],
    ) {
        let width = self.value_width();
        for (r, i) in queries.enumerate() {
            if let Some(row) = self.lowered(i, &rows[r]) {
                rows[r] = row;
                let output = &mut output[r * width..][..width];
                output.fill(T::zero());
                self.accumulate(i..i + 1, &mut rows[r..r + 1], output, scratch);
            }
        }
    }

    /// Returns a new state for a row whose weights have vanished: relative to the loudest of the keys whose similarity
    /// is not zero, or level if there is none.
    fn lowered(&self, i: usize, row: &Row<T>) -> Option<Row<T>> {
        // Below this, factors may have been too small for all their digits.
        let faint = T::min_positive_value() / T::epsilon();
        let is_sum = self.normaliser.is_quotient() && self.normaliser.kind() == Kind::Weight;
        let vanished = row.sum <= faint && is_sum;
        if !vanished || !self.rows.keeps_any(i) {
            return None;
        }
        let (scores, keys) = self.row_scores(i);
        let counts = |j: usize| scores[j - keys.start] != T::zero();
        let has_any = self
            .rows
            .range(i)
            .any(|j| self.rows.keeps(i, j) && counts(j));
        let mut row = match has_any {
            true => Row::new(self.largest_term(i, counts)),
            false => Row {
                is_level: true,
                ..Row::new(row.reference)
            },
        };
        if let Some(sink) = self.sink {
            self.add_sink(sink, &mut row);
        }
        Some(row)
    }
}

struct Add<'a, T> {
    scores: &'a mut [T],
    terms: &'a [T],
}

impl<T: Real> Task for Add<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        crate::lanes::add(self.scores, self.terms);
    }
}

struct Divide<'a, T> {
    numbers: &'a mut [T],
    width: usize,
    divisors: &'a [T],
}

impl<T: Real> Task for Divide<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        for (row, &divisor) in self.numbers.chunks_exact_mut(self.width).zip(self.divisors) {
            row.iter_mut().for_each(|x| *x /= divisor);
        }
    }
}
