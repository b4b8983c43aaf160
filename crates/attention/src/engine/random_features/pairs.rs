//! Pairs of queries and keys: for masks that need them, for dropout, and within a block of a causal sequence.
//!
//! $a_{ij} = \sum_r \phi_r(q_i) \phi_r(k_j)$ is one matrix product of features relative to the largest of
//! their row. Where a query and a key favour other features, and all these terms vanish, the pair's logarithm
//! is computed by itself; so no pair depends on any other, and a key that is not seen on nothing at all.

use super::block::{Block, Features, Pulled, Shift};
use crate::engine::product::add_product;
use crate::engine::{PairDropout, Rows, max, sum};
use bochner_numerics::elementary::{exp_in_place, ln_in_place, max_norm};
use bochner_numerics::operations::record;
use bochner_numerics::scaling::bounded;
use bochner_numerics::{Buffer, Mat, MatMut, Operations, Real, matmul_in};
use std::ops::Range;

/// Queries or keys as factors of pairs.
#[derive(Clone)]
pub(super) struct Factors<T> {
    pub(super) block: Block<T>,
    /// The largest logarithm of each row.
    tops: Buffer<T>,
    /// The features relative to it.
    near: Buffer<T>,
    finite: bool,
}

/// What becomes known of a row: the exponent that its weights are relative to, and their sum.
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

    /// What sums over the row are multiplied with: zero where it has met no key, and never infinite, though
    /// weights of both signs may cancel.
    pub(super) fn inverse(self) -> T {
        match self.normaliser == T::zero() {
            true => T::zero(),
            false => bounded(self.normaliser.recip()),
        }
    }

    /// Divides the row's sum by its normaliser. A sum that is infinite says that a value was, and stays so.
    pub(super) fn normalise(self, sum: &mut [T]) {
        let inverse = self.inverse();
        for x in sum {
            let divided = *x * inverse;
            *x = if x.is_finite() {
                bounded(divided)
            } else {
                divided
            };
        }
    }
}

/// Which pairs are meant, and what the mask and dropout make of them.
#[derive(Clone, Copy)]
pub(super) struct Pairs<'a, T: Real> {
    pub(super) features: Features<'a, T>,
    pub(super) rows: Rows<'a>,
    pub(super) dropout: Option<PairDropout>,
    /// The first query and the first key.
    pub(super) first: (usize, usize),
}

/// Values of some keys.
#[derive(Clone, Copy)]
pub(super) struct Values<'a, T> {
    pub(super) rows: Mat<'a, T>,
    finite: bool,
}

/// What the backward pass is given of some queries: their rows, $dO_i$ and $dO_i \cdot O_i$.
#[derive(Clone, Copy)]
pub(super) struct Given<'a, T> {
    pub(super) rows: &'a [Row<T>],
    pub(super) cotangent: Mat<'a, T>,
    pub(super) deltas: &'a [T],
}

/// What is known of some pairs.
struct Scores<T> {
    /// Inner products of near features.
    products: Buffer<T>,
    /// The logarithms of the weights but for their signs, minus infinity where a pair is not kept.
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
        Self {
            finite: max_norm(&near).is_finite(),
            block,
            tops,
            near,
        }
    }

    fn matrix(&self) -> Mat<'_, T> {
        Mat::new(&self.near, self.block.rows, self.block.count())
    }

    /// The number of numbers.
    pub(super) fn size(&self) -> usize {
        self.tops.len() + self.near.len() + self.block.size()
    }

    /// Appends the rows of others.
    pub(super) fn append(&mut self, others: &Self) {
        self.block.append(&others.block);
        self.tops.extend_from_slice(&others.tops);
        self.near.extend_from_slice(&others.near);
        self.finite &= others.finite;
    }

    /// Forgets all rows but the first.
    pub(super) fn truncate(&mut self, rows: usize) {
        let features = self.block.count();
        self.block.truncate(rows);
        self.tops.truncate(rows);
        self.near.truncate(rows * features);
    }

    /// The terms $u_{ir} + l_{jr}$ of a pair, relative to the largest.
    fn terms(&self, i: usize, keys: &Self, j: usize) -> Vec<T> {
        self.terms_and_top(i, keys, j).0
    }

    fn terms_and_top(&self, i: usize, keys: &Self, j: usize) -> (Vec<T>, T) {
        let count = self.block.count();
        let (q, k) = (&self.block.logs[i * count..], &keys.block.logs[j * count..]);
        let terms = q[..count].iter().zip(&k[..count]).map(|(&u, &l)| u + l);
        let mut terms: Vec<T> = terms.collect();
        let top = max(&terms);
        terms.iter_mut().for_each(|x| *x -= top);
        (terms, top)
    }

    /// The logarithm of the weight of a pair, term by term.
    fn exact(&self, i: usize, keys: &Self, j: usize) -> T {
        let (mut terms, top) = self.terms_and_top(i, keys, j);
        exp_in_place(&mut terms);
        top + sum(&terms).ln()
    }
}

impl<'a, T: Real> Values<'a, T> {
    pub(super) fn new(rows: Mat<'a, T>) -> Self {
        Self {
            rows,
            finite: max_norm(rows.data()).is_finite(),
        }
    }
}

impl<T: Real> Pairs<'_, T> {
    /// The inner products of near features, `[queries, keys]`.
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

    /// Whether any of some queries keeps any of some keys, as far as a matrix lets it.
    fn meet_at_all(&self, queries: usize, keys: usize) -> bool {
        let (first, keys) = (self.first.0, self.first.1..self.first.1 + keys);
        (first..first + queries).any(|i| {
            let range = self.rows.range(i);
            range.start.max(keys.start) < range.end.min(keys.end)
        })
    }

    /// Overwrites what a row does not keep.
    fn fill_masked(&self, i: usize, row: &mut [T], value: T) {
        let (i, first) = (self.first.0 + i, self.first.1);
        let Range { start, end } = self.rows.range(i);
        let [start, end] = [start, end].map(|j| j.clamp(first, first + row.len()) - first);
        row[..start].fill(value);
        row[end..].fill(value);
        if let Some(matrix) = self.rows.matrix(i) {
            for (x, _) in row
                .iter_mut()
                .zip(&matrix[first..])
                .filter(|(_, keep)| !**keep)
            {
                *x = value;
            }
        }
    }

    /// The pairs whose product says nothing, among those whose logarithm is a number.
    fn faint(&self, products: &[T], keys: usize) -> Vec<(usize, usize)> {
        let faint = T::of(FAINT);
        if !self.features.map.is_positive() || products.iter().all(|&x| x >= faint) {
            return Vec::new();
        }
        let mut found = Vec::new();
        for (i, row) in products.chunks_exact(keys).enumerate() {
            let mut row = row.to_vec();
            self.fill_masked(i, &mut row, T::one());
            let all = row.iter().enumerate();
            found.extend(all.filter(|(_, x)| **x < faint).map(|(j, _)| (i, j)));
        }
        found
    }

    /// The logarithms of the weights of all pairs.
    fn scores(&self, q: &Factors<T>, k: &Factors<T>) -> Scores<T> {
        let (keys, numbers) = (k.block.rows, self.features.numbers);
        let products = self.products(q, k);
        record(Operations::exponentials(products.len()));
        let mut logs = numbers.empty(products.len());
        logs.extend(products.iter().map(|x| x.abs()));
        ln_in_place(&mut logs);
        for (row, &top) in logs.chunks_exact_mut(keys).zip(q.tops.iter()) {
            let each = row.iter_mut().zip(k.tops.iter());
            each.for_each(|(x, &key)| *x += top + key);
        }
        let faint = self.faint(&products, keys);
        for &(i, j) in &faint {
            logs[i * keys + j] = q.exact(i, k, j);
        }
        for (i, row) in logs.chunks_exact_mut(keys).enumerate() {
            self.fill_masked(i, row, T::neg_infinity());
        }
        Scores {
            products,
            logs,
            faint,
        }
    }

    /// Weights of pairs relative to what is known of their rows, which meet these keys now; returns what
    /// everything summed up before must be multiplied with, too.
    fn weigh(&self, q: &Factors<T>, k: &Factors<T>, rows: &mut [Row<T>]) -> (Buffer<T>, Buffer<T>) {
        let (keys, numbers) = (k.block.rows, self.features.numbers);
        let Scores {
            products,
            logs: mut weights,
            ..
        } = self.scores(q, k);
        let mut factors = numbers.filled(rows.len(), T::one());
        let all = weights.chunks_exact_mut(keys).zip(rows.iter_mut());
        for (i, (weights, row)) in all.enumerate() {
            let now = row.reference.max(max(weights));
            if now == T::neg_infinity() && !weights.iter().any(|x| x.is_nan()) {
                continue;
            }
            if row.reference < now {
                factors[i] = (row.reference - now).exp();
                row.normaliser *= factors[i];
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

    /// From logarithms to numbers with the signs of the products.
    fn exponentials(&self, weights: &mut [T], products: &[T]) {
        record(Operations::exponentials(weights.len()));
        exp_in_place(weights);
        if !self.features.map.is_positive() {
            for (x, &product) in weights.iter_mut().zip(products) {
                *x = if product < T::zero() { -*x } else { *x };
            }
        }
    }

    /// Adds to rows what their queries make of some keys.
    pub(super) fn meet(
        &self,
        (q, k): (&Factors<T>, &Factors<T>),
        values: Values<T>,
        rows: &mut [Row<T>],
        out: &mut [T],
    ) {
        let (keys, width) = values.rows.shape();
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
        let weights = Mat::new(&weights, rows.len(), keys);
        add_product(
            self.features.numbers,
            weights,
            values.rows,
            values.finite,
            out,
        );
    }

    /// The normalised weights of some queries, given all their keys.
    pub(super) fn normalised(&self, q: &Factors<T>, k: &Factors<T>) -> Buffer<T> {
        let mut rows = vec![Row::blind(); q.block.rows];
        let (mut weights, _) = self.weigh(q, k, &mut rows);
        for (weights, row) in weights.chunks_exact_mut(k.block.rows).zip(rows) {
            let inverse = row.inverse();
            weights.iter_mut().for_each(|x| *x *= inverse);
        }
        weights
    }

    /// Adds the gradients of some queries, and of their keys and these keys' values as far as they see them.
    pub(super) fn pull_back(
        &self,
        (q, k): (&Factors<T>, &Factors<T>),
        values: Values<T>,
        given: Given<T>,
        (along_q, along_k): (&mut Pulled<T>, &mut Pulled<T>),
        along_values: &mut [T],
    ) {
        let ((keys, width), numbers) = (values.rows.shape(), self.features.numbers);
        let queries = q.block.rows;
        if !self.meet_at_all(queries, keys) {
            return;
        }
        let Scores {
            products,
            logs: mut weights,
            faint,
        } = self.scores(q, k);
        // The very numbers of the forward pass: weights of a row must add up to one.
        for (weights, row) in weights.chunks_exact_mut(keys).zip(given.rows) {
            if row.reference > T::neg_infinity() {
                weights.iter_mut().for_each(|x| *x -= row.reference);
            }
        }
        self.exponentials(&mut weights, &products);
        let mut along = numbers.any(weights.len());
        let target = MatMut::new(&mut along, queries, keys);
        let transposed = values.rows.t();
        matmul_in(
            numbers,
            T::one(),
            given.cotangent,
            transposed,
            T::zero(),
            target,
        );
        // Cotangents of the products.
        let mut slopes = numbers.any(weights.len());
        let mut kept = numbers.filled(keys, T::one());
        for (i, row) in given.rows.iter().enumerate() {
            let range = i * keys..(i + 1) * keys;
            let (weights, slopes) = (&mut weights[range.clone()], &mut slopes[range.clone()]);
            let inverse = row.inverse();
            if let Some(dropout) = self.dropout {
                kept.fill(T::one());
                dropout.scale(self.first.0 + i, self.first.1, &mut kept);
            }
            let each = weights.iter_mut().zip(slopes.iter_mut());
            let each = each.zip(&products[range.clone()]).zip(&mut along[range]);
            for ((((weight, slope), &product), along), &kept) in each.zip(kept.iter()) {
                *weight *= inverse;
                *along = *along * kept - given.deltas[i];
                *slope = match product == T::zero() {
                    true => T::zero(),
                    false => *weight / product * *along,
                };
                *along *= *weight;
                *weight *= kept;
            }
            self.fill_masked(i, weights, T::zero());
            self.fill_masked(i, slopes, T::zero());
        }
        for (i, j) in faint {
            let at = i * keys + j;
            let mut terms = q.terms(i, k, j);
            exp_in_place(&mut terms);
            let share = along[at] / sum(&terms);
            slopes[at] = T::zero();
            let cotangent = vec![share; terms.len()];
            self.features
                .pull_back_row((&q.block, i), &terms, &cotangent, along_q);
            self.features
                .pull_back_row((&k.block, j), &terms, &cotangent, along_k);
        }
        let (weights, slopes) = (
            Mat::new(&weights, queries, keys),
            Mat::new(&slopes, queries, keys),
        );
        let target = MatMut::new(along_values, keys, width);
        matmul_in(
            numbers,
            T::one(),
            weights.t(),
            given.cotangent,
            T::one(),
            target,
        );
        for (slopes, own, other, along) in [(slopes, q, k, along_q), (slopes.t(), k, q, along_k)] {
            let mut cotangent = numbers.filled(own.near.len(), T::zero());
            add_product(
                numbers,
                slopes,
                other.matrix(),
                other.finite,
                &mut cotangent,
            );
            self.features
                .pull_back(&own.block, &own.near, &cotangent, along);
        }
    }
}
