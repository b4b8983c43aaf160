//! Pairs of queries and keys: for masks that need them, for dropout, and within a block of a causal sequence.
//!
//! $a_{ij} = \sum_r \phi_r(q_i) \phi_r(k_j)$ is one matrix product of features relative to the largest of
//! their row. Where a query and a key favour other features, and all these terms vanish, the pair's logarithm
//! is computed by itself; so no pair depends on any other, and a hidden key on nothing at all.

use super::Head;
use super::block::{Block, Multiples, Shift};
use crate::FeatureForm;
use crate::lanes::{dot, max, sum};
use crate::normaliser::{self, BlockGradients, Normaliser, Row, Softmax, Sum};
use crate::pairwise::Cotangent;
use bochner_numerics::elementary::{exp_in_place, ln_in_place};
use bochner_numerics::operations::record;
use bochner_numerics::scaling::bounded;
use bochner_numerics::{Buffer, Buffers, Mat, MatMut, Operations, Real, matmul_in};

/// Queries or keys as factors of pairs.
#[derive(Clone, Debug)]
pub(super) struct Factors<T> {
    pub(super) block: Block<T>,
    /// The largest logarithm of each row.
    tops: Buffer<T>,
    /// The features relative to it.
    near: Multiples<T>,
}

/// The factor of sums over a row: zero where it has met no key, and never infinite, though weights of both signs may
/// cancel.
pub(super) fn inverse<T: Real>(row: &Row<T>) -> T {
    match row.sum == T::zero() {
        true => T::zero(),
        false => bounded(row.sum.recip()),
    }
}

/// Divides the sums over some rows by their normalisers.
pub(super) fn normalise<T: Real>(sums: &mut [T], rows: &[Row<T>]) {
    let width = sums.len() / rows.len().max(1);
    for (sums, row) in sums.chunks_exact_mut(width.max(1)).zip(rows) {
        let inverse = inverse(row);
        sums.iter_mut().for_each(|x| *x = bounded(*x * inverse));
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
    pub(super) fn new(block: Block<T>, numbers: &Buffers<T>) -> Self {
        let tops = block.tops(Shift::None, numbers);
        let near = block.relative(Shift::None, &tops, numbers);
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

/// Pairs of a block of queries and a block of keys; `first` are the first query and the first key.
impl<T: Real> Head<'_, T> {
    fn are_values(&self) -> bool {
        self.map.form() == FeatureForm::Values
    }

    /// Returns the inner products of near features, `[queries, keys]`.
    fn products(&self, q: &Factors<T>, k: &Factors<T>) -> Buffer<T> {
        let (rows, keys, numbers) = (q.block.rows, k.block.rows, self.numbers());
        let mut products = numbers.any(rows * keys);
        let (q, k, target) = (
            q.matrix(),
            k.matrix().t(),
            MatMut::new(&mut products, rows, keys),
        );
        matmul_in(numbers, T::one(), q, k, T::zero(), target);
        products
    }

    /// Whether any of some queries may keep any of some keys.
    fn meet_at_all(&self, first: (usize, usize), (queries, keys): (usize, usize)) -> bool {
        let (queries, keys) = (first.0..first.0 + queries, first.1..first.1 + keys);
        let meets = |i| {
            let range = self.rows.range(i);
            range.start.max(keys.start) < range.end.min(keys.end)
        };
        queries.clone().any(meets) && !self.rows.hides(&queries, &keys)
    }

    /// Overwrites the numbers of hidden keys in a row of pairs.
    fn hide(&self, first: (usize, usize), i: usize, row: &mut [T], value: T) {
        let keys = first.1..first.1 + row.len();
        self.rows.fill_hidden(first.0 + i, &keys, row, value);
    }

    /// Returns the visible pairs whose product says nothing.
    fn faint(&self, first: (usize, usize), products: &[T], keys: usize) -> Vec<(usize, usize)> {
        let faint = T::of(FAINT);
        let is_exponential = self.map.form() == FeatureForm::Exponentials;
        if !is_exponential || products.iter().all(|&x| x >= faint) {
            return Vec::new();
        }
        let mut found = Vec::new();
        for (i, row) in products.chunks_exact(keys).enumerate() {
            let mut row = row.to_vec();
            self.hide(first, i, &mut row, T::one());
            let all = row.iter().enumerate();
            found.extend(all.filter(|(_, x)| **x < faint).map(|(j, _)| (i, j)));
        }
        found
    }

    fn scores(&self, first: (usize, usize), q: &Factors<T>, k: &Factors<T>) -> Scores<T> {
        let (keys, numbers) = (k.block.rows, self.numbers());
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
                faint = self.faint(first, &products, keys);
                for &(i, j) in &faint {
                    let (terms, top) = q.terms(i, k, j);
                    logs[i * keys + j] = top + sum(&terms).ln();
                }
            }
        }
        for (i, row) in logs.chunks_exact_mut(keys).enumerate() {
            self.hide(first, i, row, hidden);
        }
        Scores {
            products,
            logs,
            faint,
        }
    }

    /// The normaliser of pairs: of weights, or of their logarithms.
    fn normaliser(&self) -> &'static dyn Normaliser<T> {
        match self.are_values() {
            true => &Sum,
            false => &Softmax,
        }
    }

    /// Gives numbers the signs of the products, where features have signs.
    fn sign(&self, numbers: &mut [T], products: &[T]) {
        if self.map.form() == FeatureForm::SignedExponentials {
            for (x, &product) in numbers.iter_mut().zip(products) {
                *x = if product < T::zero() { -*x } else { *x };
            }
        }
    }

    /// Returns weights of pairs relative to the state of their rows, which meet these keys now, and the factors that
    /// earlier sums must be multiplied with.
    fn weigh(
        &self,
        first: (usize, usize),
        (q, k): (&Factors<T>, &Factors<T>),
        rows: &mut [Row<T>],
    ) -> (Buffer<T>, Buffer<T>) {
        let (keys, numbers) = (k.block.rows, self.numbers());
        let Scores {
            products,
            logs: mut weights,
            ..
        } = self.scores(first, q, k);
        let (mut rescale, mut before) = (numbers.any(rows.len()), numbers.empty(rows.len()));
        before.extend(rows.iter().map(|row| row.sum));
        self.normaliser().absorb(normaliser::Block {
            scores: &mut weights,
            keys,
            factors: None,
            rows,
            rescale: &mut rescale,
        });
        if self.map.form() == FeatureForm::SignedExponentials {
            self.sign(&mut weights, &products);
            let sums = before.iter().zip(rescale.iter());
            for ((row, (&before, &factor)), weights) in
                rows.iter_mut().zip(sums).zip(weights.chunks_exact(keys))
            {
                row.sum = before * factor + sum(weights);
            }
        }
        (weights, rescale)
    }

    /// Adds to rows what their queries make of some keys.
    pub(super) fn meet(
        &self,
        first: (usize, usize),
        (q, k): (&Factors<T>, &Factors<T>),
        values: Mat<T>,
        rows: &mut [Row<T>],
        out: &mut [T],
    ) {
        let (keys, width) = values.shape();
        if !self.meet_at_all(first, (rows.len(), keys)) {
            return;
        }
        let (mut weights, factors) = self.weigh(first, (q, k), rows);
        for (out, &factor) in out.chunks_exact_mut(width).zip(factors.iter()) {
            if factor != T::one() {
                out.iter_mut().for_each(|x| *x *= factor);
            }
        }
        if let Some(dropout) = self.dropout {
            for (i, weights) in weights.chunks_exact_mut(keys).enumerate() {
                dropout.scale(first.0 + i, first.1, weights);
            }
        }
        let (weights, one) = (Mat::new(&weights, rows.len(), keys), T::one());
        let target = MatMut::new(out, rows.len(), width);
        matmul_in(self.numbers(), one, weights, values, one, target);
    }

    /// Returns the normalised weights of all queries, given all their keys.
    pub(super) fn normalised(&self, q: &Factors<T>, k: &Factors<T>) -> Buffer<T> {
        let mut rows = vec![Row::new(0.0); q.block.rows];
        let (mut weights, _) = self.weigh((0, 0), (q, k), &mut rows);
        normalise(&mut weights, &rows);
        weights
    }

    /// Adds the gradients along the features of some queries and keys, and along these keys' values as far as the
    /// queries see them.
    pub(super) fn pull_pairs(
        &self,
        first: (usize, usize),
        (q, k): (&Factors<T>, &Factors<T>),
        values: Mat<T>,
        given: &Cotangent<T>,
        (of_q, of_k): (&mut [T], &mut [T]),
        of_values: &mut [T],
    ) {
        let ((keys, width), numbers) = (values.shape(), self.numbers());
        let queries = q.block.rows;
        if !self.meet_at_all(first, (queries, keys)) {
            return;
        }
        let own = first.0..first.0 + queries;
        let (rows, cotangent) = (
            &given.rows[own.clone()],
            given.cotangent.row_range(own.clone()),
        );
        let Scores {
            products,
            logs: mut slopes,
            faint,
        } = self.scores(first, q, k);
        let mut weights = numbers.any(slopes.len());
        let (one, zero) = (T::one(), T::zero());
        let target = MatMut::new(&mut weights, queries, keys);
        matmul_in(numbers, one, cotangent, values.t(), zero, target);
        let mut deltas = numbers.empty(queries);
        deltas.extend(own.map(|i| dot(given.output.row(i), given.cotangent.row(i))));
        let dropout = self.dropout.map(|dropout| {
            let mut factors = numbers.any(slopes.len());
            for (i, factors) in factors.chunks_exact_mut(keys).enumerate() {
                dropout.fill(first.0 + i, first.1, factors);
            }
            factors
        });
        self.normaliser().pull(BlockGradients {
            scores: &mut slopes,
            weights: &mut weights,
            terms: None,
            keys,
            factors: None,
            rows,
            deltas: &deltas,
            dropout: dropout.as_ref().map(|factors| &factors[..]),
        });
        for numbers in [&mut slopes, &mut weights] {
            self.sign(numbers, &products);
            for (i, (numbers, row)) in numbers.chunks_exact_mut(keys).zip(rows).enumerate() {
                match row.sum == zero {
                    true => numbers.fill(zero),
                    false => self.hide(first, i, numbers, zero),
                }
            }
        }
        for (i, j) in faint {
            let at = i * keys + j;
            let (terms, _) = q.terms(i, k, j);
            let share = std::mem::take(&mut slopes[at]) / sum(&terms);
            for (all, row) in [(&mut *of_q, i), (&mut *of_k, j)] {
                let own = all[row * terms.len()..].iter_mut().zip(&terms);
                own.for_each(|(sum, &term)| *sum += share * term);
            }
        }
        if !self.are_values() {
            // From logarithms to products.
            for (x, &product) in slopes.iter_mut().zip(products.iter()) {
                *x = if product == zero { zero } else { *x / product };
            }
        }
        let (weights, slopes) = (
            Mat::new(&weights, queries, keys),
            Mat::new(&slopes, queries, keys),
        );
        let target = MatMut::new(of_values, keys, width);
        matmul_in(numbers, one, weights.t(), cotangent, one, target);
        for (slopes, own, other, gradient) in [(slopes, q, k, of_q), (slopes.t(), k, q, of_k)] {
            let mut cotangent = numbers.any(own.block.len());
            let target = MatMut::new(&mut cotangent, own.block.rows, own.block.features);
            matmul_in(numbers, one, slopes, other.matrix(), zero, target);
            own.near.pull(&cotangent, gradient);
        }
    }
}
