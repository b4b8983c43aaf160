//! Pairs of queries and keys: for masks that need them, for dropout, and within a block of a causal sequence.
//!
//! $a_{ij} = \sum_r \phi_r(q_i) \phi_r(k_j)$ is one matrix product of features relative to the largest of
//! their row. Where a query and a key favour other features, and all these terms vanish, the pair's logarithm
//! is computed by itself; so no pair depends on any other, and a hidden key on nothing at all.

use super::FeatureForm;
use super::block::{Block, Features, Multiples, Shift};
use crate::call::PairDropout;
use crate::lanes::{max, sum};
use crate::mask::HeadMask;
use bochner_numerics::elementary::{exp_in_place, ln_in_place};
use bochner_numerics::operations::record;
use bochner_numerics::scaling::bounded;
use bochner_numerics::{Buffer, Mat, MatMut, Operations, Real, matmul_in};
use std::ops::Range;

/// Queries or keys as factors of pairs.
#[derive(Clone, Debug)]
pub(super) struct Factors<T> {
    pub(super) block: Block<T>,
    /// The largest logarithm of each row.
    tops: Buffer<T>,
    /// The features relative to it.
    near: Multiples<T>,
}

/// The state of a row: the exponent that its weights are relative to, and their sum.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<T> {
    pub(super) reference: T,
    pub(super) normaliser: T,
}

impl<T: Real> Row<T> {
    /// A row that has met no key.
    pub(super) fn blind() -> Self {
        Self {
            reference: T::neg_infinity(),
            normaliser: T::zero(),
        }
    }

    /// The factor of sums over the row: zero where it has met no key, and never infinite, though weights of both signs
    /// may cancel.
    pub(super) fn inverse(self) -> T {
        match self.normaliser == T::zero() {
            true => T::zero(),
            false => bounded(self.normaliser.recip()),
        }
    }

    /// Divides the row's sum by its normaliser.
    pub(super) fn normalise(self, sum: &mut [T]) {
        let inverse = self.inverse();
        sum.iter_mut().for_each(|x| *x = bounded(*x * inverse));
    }
}

/// Some pairs, with their mask and dropout.
#[derive(Clone, Copy)]
pub(super) struct Pairs<'a, T: Real> {
    pub(super) features: Features<'a, T>,
    pub(super) rows: HeadMask<'a>,
    pub(super) dropout: Option<PairDropout>,
    /// The first query and the first key.
    pub(super) first: (usize, usize),
}

/// The arguments of the backward pass for some queries: their rows, $dO_i$ and $dO_i \cdot O_i$.
#[derive(Clone, Copy)]
pub(super) struct Given<'a, T> {
    pub(super) rows: &'a [Row<T>],
    pub(super) cotangent: Mat<'a, T>,
    pub(super) deltas: &'a [T],
}

impl<'a, T: Real> Given<'a, T> {
    pub(super) fn rows(&self, queries: &Range<usize>) -> Given<'a, T> {
        Given {
            rows: &self.rows[queries.clone()],
            cotangent: self.cotangent.row_range(queries.clone()),
            deltas: &self.deltas[queries.clone()],
        }
    }
}

/// Unnormalised weights of some pairs.
struct Scores<T> {
    /// Inner products of near features.
    products: Buffer<T>,
    /// The logarithms of the weights without their signs, minus infinity where a pair is hidden; the products
    /// themselves, 0 where a pair is hidden, if features are values.
    logs: Buffer<T>,
    /// Pairs whose product says nothing.
    faint: Vec<(usize, usize)>,
}

/// Below this a product of features says nothing of its pair.
const FAINT: f64 = 1.0 / (1_u64 << 60) as f64;

impl<T: Real> Factors<T> {
    pub(super) fn new(block: Block<T>, features: &Features<T>) -> Self {
        let tops = block.tops(Shift::None, features.numbers);
        let near = block.relative(Shift::None, &tops, features.numbers);
        Self { block, tops, near }
    }

    /// Appends the rows of others.
    pub(super) fn append(&mut self, others: &Self) {
        self.block.append(&others.block);
        self.tops.extend_from_slice(&others.tops);
        self.near.append(&others.near);
    }

    /// Drops all rows but the first.
    pub(super) fn truncate(&mut self, rows: usize) {
        self.block.truncate(rows);
        self.tops.truncate(rows);
        self.near.truncate(rows, self.block.features);
    }

    fn matrix(&self) -> Mat<'_, T> {
        let numbers = self.near.numbers();
        Mat::new(
            numbers,
            self.block.rows,
            numbers.len() / self.block.rows.max(1),
        )
    }

    /// The terms $u_{ir} + l_{jr}$ of a pair, relative to the largest, and this.
    fn terms(&self, i: usize, keys: &Self, j: usize) -> (Vec<T>, T) {
        let count = self.block.len() / self.block.rows;
        let (q, k) = (&self.block.logs[i * count..], &keys.block.logs[j * count..]);
        let mut terms: Vec<T> = q[..count]
            .iter()
            .zip(&k[..count])
            .map(|(&u, &l)| u + l)
            .collect();
        let top = max(&terms);
        terms.iter_mut().for_each(|x| *x -= top);
        exp_in_place(&mut terms);
        (terms, top)
    }
}

impl<T: Real> Pairs<'_, T> {
    fn are_values(&self) -> bool {
        self.features.map.form() == FeatureForm::Values
    }

    /// Returns the inner products of near features, `[queries, keys]`.
    fn products(&self, q: &Factors<T>, k: &Factors<T>) -> Buffer<T> {
        let (rows, keys, numbers) = (q.block.rows, k.block.rows, self.features.numbers);
        let mut products = numbers.any(rows * keys);
        let target = MatMut::new(&mut products, rows, keys);
        matmul_in(
            numbers,
            T::one(),
            q.matrix(),
            k.matrix().t(),
            T::zero(),
            target,
        );
        products
    }

    /// Whether any of some queries may keep any of some keys.
    fn meet_at_all(&self, queries: usize, keys: usize) -> bool {
        let (queries, keys) = (
            self.first.0..self.first.0 + queries,
            self.first.1..self.first.1 + keys,
        );
        let meets = |i| {
            let range = self.rows.range(i);
            range.start.max(keys.start) < range.end.min(keys.end)
        };
        queries.clone().any(meets) && !self.rows.hides(&queries, &keys)
    }

    /// Overwrites the numbers of hidden keys.
    fn fill_hidden(&self, i: usize, row: &mut [T], value: T) {
        let keys = self.first.1..self.first.1 + row.len();
        self.rows.fill_hidden(self.first.0 + i, &keys, row, value);
    }

    /// Returns the visible pairs whose product says nothing.
    fn faint(&self, products: &[T], keys: usize) -> Vec<(usize, usize)> {
        let faint = T::of(FAINT);
        let is_exponential = self.features.map.form() == FeatureForm::Exponentials;
        if !is_exponential || products.iter().all(|&x| x >= faint) {
            return Vec::new();
        }
        let mut found = Vec::new();
        for (i, row) in products.chunks_exact(keys).enumerate() {
            let mut row = row.to_vec();
            self.fill_hidden(i, &mut row, T::one());
            let all = row.iter().enumerate();
            found.extend(all.filter(|(_, x)| **x < faint).map(|(j, _)| (i, j)));
        }
        found
    }

    fn scores(&self, q: &Factors<T>, k: &Factors<T>) -> Scores<T> {
        let (keys, numbers) = (k.block.rows, self.features.numbers);
        let products = self.products(q, k);
        let mut logs = numbers.empty(products.len());
        let mut faint = Vec::new();
        let mut hidden = T::zero();
        match self.are_values() {
            true => logs.extend_from_slice(&products),
            false => {
                record(Operations::exponentials(products.len()));
                hidden = T::neg_infinity();
                logs.extend(products.iter().map(|x| x.abs()));
                ln_in_place(&mut logs);
                for (row, &top) in logs.chunks_exact_mut(keys).zip(q.tops.iter()) {
                    row.iter_mut()
                        .zip(&k.tops)
                        .for_each(|(x, &key)| *x += top + key);
                }
                faint = self.faint(&products, keys);
                for &(i, j) in &faint {
                    let (terms, top) = q.terms(i, k, j);
                    logs[i * keys + j] = top + sum(&terms).ln();
                }
            }
        }
        for (i, row) in logs.chunks_exact_mut(keys).enumerate() {
            self.fill_hidden(i, row, hidden);
        }
        Scores {
            products,
            logs,
            faint,
        }
    }

    /// Returns weights of pairs relative to the state of their rows, which meet these keys now, and the factors that
    /// earlier sums must be multiplied with.
    fn weigh(&self, q: &Factors<T>, k: &Factors<T>, rows: &mut [Row<T>]) -> (Buffer<T>, Buffer<T>) {
        let (keys, numbers) = (k.block.rows, self.features.numbers);
        let Scores {
            products,
            logs: mut weights,
            ..
        } = self.scores(q, k);
        let mut factors = numbers.filled(rows.len(), T::one());
        if self.are_values() {
            for (weights, row) in weights.chunks_exact(keys).zip(rows) {
                row.reference = T::zero();
                row.normaliser += sum(weights);
            }
            return (weights, factors);
        }
        for ((weights, row), factor) in weights
            .chunks_exact_mut(keys)
            .zip(rows.iter_mut())
            .zip(factors.iter_mut())
        {
            let now = row.reference.max(max(weights));
            if now == T::neg_infinity() {
                continue;
            }
            if row.reference < now {
                *factor = (row.reference - now).exp();
                row.normaliser *= *factor;
                row.reference = now;
            }
            weights.iter_mut().for_each(|x| *x -= now);
        }
        self.exponentials(&mut weights, &products);
        for (weights, row) in weights.chunks_exact(keys).zip(rows) {
            row.normaliser += sum(weights);
        }
        (weights, factors)
    }

    /// Replaces logarithms by numbers with the signs of the products.
    fn exponentials(&self, weights: &mut [T], products: &[T]) {
        record(Operations::exponentials(weights.len()));
        exp_in_place(weights);
        if self.features.map.form() == FeatureForm::SignedExponentials {
            for (x, &product) in weights.iter_mut().zip(products) {
                *x = if product < T::zero() { -*x } else { *x };
            }
        }
    }

    /// Adds to rows what their queries make of some keys.
    pub(super) fn meet(
        &self,
        (q, k): (&Factors<T>, &Factors<T>),
        values: Mat<T>,
        rows: &mut [Row<T>],
        out: &mut [T],
    ) {
        let (keys, width) = values.shape();
        if !self.meet_at_all(rows.len(), keys) {
            return;
        }
        let (mut weights, factors) = self.weigh(q, k, rows);
        for (out, &factor) in out.chunks_exact_mut(width).zip(factors.iter()) {
            if factor != T::one() {
                out.iter_mut().for_each(|x| *x *= factor);
            }
        }
        if let Some(dropout) = self.dropout {
            for (i, weights) in weights.chunks_exact_mut(keys).enumerate() {
                dropout.scale(self.first.0 + i, self.first.1, weights);
            }
        }
        let (weights, one) = (Mat::new(&weights, rows.len(), keys), T::one());
        let target = MatMut::new(out, rows.len(), width);
        matmul_in(self.features.numbers, one, weights, values, one, target);
    }

    /// Returns the normalised weights of some queries, given all their keys.
    pub(super) fn normalised(&self, q: &Factors<T>, k: &Factors<T>) -> Buffer<T> {
        let mut rows = vec![Row::blind(); q.block.rows];
        let (mut weights, _) = self.weigh(q, k, &mut rows);
        for (weights, row) in weights.chunks_exact_mut(k.block.rows).zip(rows) {
            let inverse = row.inverse();
            weights.iter_mut().for_each(|x| *x *= inverse);
        }
        weights
    }

    /// Adds the gradients along the features of some queries and keys, and along these keys' values as far as the
    /// queries see them.
    pub(super) fn pull(
        &self,
        (q, k): (&Factors<T>, &Factors<T>),
        values: Mat<T>,
        given: Given<T>,
        (of_q, of_k): (&mut [T], &mut [T]),
        of_values: &mut [T],
    ) {
        let ((keys, width), numbers) = (values.shape(), self.features.numbers);
        let queries = q.block.rows;
        if !self.meet_at_all(queries, keys) {
            return;
        }
        let Scores {
            products,
            logs: mut weights,
            faint,
        } = self.scores(q, k);
        if !self.are_values() {
            // The very numbers of the forward pass: weights of a row must add up to one.
            for (weights, row) in weights.chunks_exact_mut(keys).zip(given.rows) {
                if row.reference > T::neg_infinity() {
                    weights.iter_mut().for_each(|x| *x -= row.reference);
                }
            }
            self.exponentials(&mut weights, &products);
        }
        let mut along = numbers.any(weights.len());
        let target = MatMut::new(&mut along, queries, keys);
        matmul_in(
            numbers,
            T::one(),
            given.cotangent,
            values.t(),
            T::zero(),
            target,
        );
        let mut slopes = numbers.any(weights.len());
        self.pull_rows(
            given,
            keys,
            (&products, &mut weights),
            (&mut along, &mut slopes),
        );
        for (i, j) in faint {
            let at = i * keys + j;
            let (terms, _) = q.terms(i, k, j);
            let share = along[at] / sum(&terms);
            slopes[at] = T::zero();
            for (all, row) in [(&mut *of_q, i), (&mut *of_k, j)] {
                let own = all[row * terms.len()..].iter_mut().zip(&terms);
                own.for_each(|(sum, &term)| *sum += share * term);
            }
        }
        let (weights, slopes) = (
            Mat::new(&weights, queries, keys),
            Mat::new(&slopes, queries, keys),
        );
        let target = MatMut::new(of_values, keys, width);
        matmul_in(
            numbers,
            T::one(),
            weights.t(),
            given.cotangent,
            T::one(),
            target,
        );
        for (slopes, own, other, gradient) in [(slopes, q, k, of_q), (slopes.t(), k, q, of_k)] {
            let mut cotangent = numbers.any(own.block.len());
            let target = MatMut::new(&mut cotangent, own.block.rows, self.features.count());
            matmul_in(numbers, T::one(), slopes, other.matrix(), T::zero(), target);
            own.near.pull(&cotangent, gradient);
        }
    }

    /// Replaces weights by those after normalisation and dropout, and the gradients along them by those along their
    /// logarithms; writes the gradients along the products.
    fn pull_rows(
        &self,
        given: Given<T>,
        keys: usize,
        (products, weights): (&[T], &mut [T]),
        (along, slopes): (&mut [T], &mut [T]),
    ) {
        let (are_values, mut kept) = (self.are_values(), vec![T::one(); keys]);
        for (i, row) in given.rows.iter().enumerate() {
            let range = i * keys..(i + 1) * keys;
            let (weights, slopes) = (&mut weights[range.clone()], &mut slopes[range.clone()]);
            let inverse = row.inverse();
            if let Some(dropout) = self.dropout {
                dropout.fill(self.first.0 + i, self.first.1, &mut kept);
            }
            let each = weights.iter_mut().zip(slopes.iter_mut());
            let each = each.zip(&products[range.clone()]).zip(&mut along[range]);
            for ((((weight, slope), &product), along), &kept) in each.zip(kept.iter()) {
                *weight *= inverse;
                *along = *along * kept - given.deltas[i];
                *slope = match (are_values, product == T::zero()) {
                    (true, _) => inverse * *along,
                    (false, true) => T::zero(),
                    (false, false) => *weight / product * *along,
                };
                *along *= *weight;
                *weight *= kept;
            }
            self.fill_hidden(i, weights, T::zero());
            self.fill_hidden(i, slopes, T::zero());
        }
    }
}
