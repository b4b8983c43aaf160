//! The backward pass of one chunk of queries.

use super::distance::pull_distances;
use super::product::add_product;
use super::sweep::{Relative, RowBlock, sum, weights_and_slopes};
use super::{Head, QUERY_BLOCK, RowStatistics, Score, blocks};
use bochner_numerics::{Mat, MatMut, Real, matmul};
use std::ops::Range;

/// What some queries and keys contribute to the gradients of one head.
pub(crate) struct HeadGradients<T> {
    /// The first query and the first key.
    first: (usize, usize),
    /// With respect to the queries' rows of `left`.
    pub(crate) left: Vec<T>,
    /// With respect to the keys' rows of `right`.
    pub(crate) right: Vec<T>,
    /// With respect to the keys' values.
    pub(crate) values: Vec<T>,
    /// With respect to the keys' part of the exponent (for an exponential score, the bias).
    pub(crate) keys: Vec<T>,
    /// With respect to the queries' part of the exponent.
    pub(crate) queries: Vec<T>,
}

impl<T: Real> HeadGradients<T> {
    pub(super) fn zeros(head: &Head<T>, queries: Range<usize>, keys: Range<usize>) -> Self {
        let zeros = |n| vec![T::zero(); n];
        Self {
            first: (queries.start, keys.start),
            left: zeros(queries.len() * head.width()),
            right: zeros(keys.len() * head.width()),
            values: zeros(keys.len() * head.value_width()),
            keys: zeros(keys.len()),
            queries: zeros(queries.len()),
        }
    }

    /// The rows of `left` of some queries.
    pub(super) fn left_rows(&mut self, queries: &Range<usize>, width: usize) -> &mut [T] {
        &mut self.left[elements(queries, self.first.0, width)]
    }

    /// The rows of `right` of some keys.
    pub(super) fn right_rows(&mut self, keys: &Range<usize>, width: usize) -> &mut [T] {
        &mut self.right[elements(keys, self.first.1, width)]
    }

    /// The rows of `left` of some queries and the rows of `right` of some keys.
    fn operand_rows(
        &mut self,
        queries: &Range<usize>,
        keys: &Range<usize>,
        width: usize,
    ) -> (&mut [T], &mut [T]) {
        (
            &mut self.left[elements(queries, self.first.0, width)],
            &mut self.right[elements(keys, self.first.1, width)],
        )
    }

    /// The values of some keys.
    fn value_rows(&mut self, keys: &Range<usize>, width: usize) -> &mut [T] {
        &mut self.values[elements(keys, self.first.1, width)]
    }

    /// Adds gradients with respect to one key's value and exponent.
    pub(super) fn add_key(&mut self, key: usize, value: &[T], exponent: T) {
        add(self.value_rows(&(key..key + 1), value.len()), value);
        self.keys[key - self.first.1] += exponent;
    }

    /// Adds those of queries and keys among one's own.
    pub(super) fn add(&mut self, head: &Head<T>, part: &Self) {
        let queries = part.first.0..part.first.0 + part.queries.len();
        let keys = part.first.1..part.first.1 + part.keys.len();
        add(self.left_rows(&queries, head.width()), &part.left);
        add(self.right_rows(&keys, head.width()), &part.right);
        add(self.value_rows(&keys, head.value_width()), &part.values);
        add(&mut self.keys[elements(&keys, self.first.1, 1)], &part.keys);
    }

    /// Appends the next chunk's rows and adds its sums.
    pub(crate) fn join(&mut self, next: Self) {
        self.left.extend(next.left);
        self.queries.extend(next.queries);
        add(&mut self.right, &next.right);
        add(&mut self.values, &next.values);
        add(&mut self.keys, &next.keys);
    }
}

/// The forward pass's results and the cotangent of its output, all for the whole head.
pub(crate) struct Cotangent<'a, T> {
    pub(crate) statistics: &'a [RowStatistics<T>],
    pub(crate) output: Mat<'a, T>,
    pub(crate) cotangent: Mat<'a, T>,
}

impl<T: Real> Head<'_, T> {
    /// The contribution of a chunk of queries to the gradients.
    ///
    /// With $P$ the weights, $G_{ij} = dO_i \cdot v_j - dO_i \cdot O_i$: $dV = P^T dO$,
    /// $du_{ij} = P_{ij} G_{ij}$, and $dx_{ij} = G_{ij}\, \partial P_{ij} / \partial x_{ij}$ at a
    /// fixed normaliser.
    pub(crate) fn backward(&self, chunk: Range<usize>, given: &Cotangent<T>) -> HeadGradients<T> {
        let all = 0..self.right.shape().0;
        let mut gradients = HeadGradients::zeros(self, chunk.clone(), all);
        for queries in blocks(chunk.clone(), QUERY_BLOCK) {
            for keys in self.key_blocks(&queries) {
                self.backward_block(queries.clone(), keys, given, &mut gradients);
            }
        }
        gradients
    }

    /// What the pairs of a block contribute.
    pub(super) fn backward_block(
        &self,
        queries: Range<usize>,
        keys: Range<usize>,
        given: &Cotangent<T>,
        gradients: &mut HeadGradients<T>,
    ) {
        let (rows, cols, width) = (queries.len(), keys.len(), self.width());
        let cotangent = given.cotangent.row_range(queries.clone());
        let mut dp = vec![T::zero(); rows * cols];
        let values = self.values.row_range(keys.clone());
        matmul(
            T::one(),
            cotangent,
            values.t(),
            T::zero(),
            MatMut::new(&mut dp, rows, cols),
        );
        let mut block = Block {
            x: self.raw_scores(queries.clone(), &keys),
            dp,
            queries,
            keys,
        };
        self.backward_rows(&mut block, given, gradients);

        let (dx, weights) = (
            Mat::new(&block.x, rows, cols),
            Mat::new(&block.dp, rows, cols),
        );
        add_product(
            weights.t(),
            cotangent,
            true,
            gradients.value_rows(&block.keys, self.value_width()),
        );
        let (left, right) = (
            self.left.row_range(block.queries.clone()),
            self.right.row_range(block.keys.clone()),
        );
        let (d_left, d_right) = gradients.operand_rows(&block.queries, &block.keys, width);
        if let Score::Periodic { .. } = self.score {
            pull_distances(dx, left, right, d_left, d_right);
        } else {
            add_product(dx, right, self.finite.right, d_left);
            add_product(dx.t(), left, self.finite.left, d_right);
        }
    }

    /// Replaces raw scores by their gradients and `dp` by the weights after dropout.
    fn backward_rows(
        &self,
        block: &mut Block<T>,
        given: &Cotangent<T>,
        gradients: &mut HeadGradients<T>,
    ) {
        let (keys, cols) = (block.keys.clone(), block.keys.len());
        let own = elements(&block.queries, gradients.first.0, 1);
        let own_keys = elements(&keys, gradients.first.1, 1);
        let mut relative = Relative::new(cols);
        let mut p = vec![T::zero(); cols];
        let rows = block
            .x
            .chunks_exact_mut(cols)
            .zip(block.dp.chunks_exact_mut(cols));
        for ((i, own), (row, dp)) in block.queries.clone().zip(own).zip(rows) {
            let at = RowBlock::new(self, i, &keys);
            weights_and_slopes(
                self.score,
                &at,
                &mut relative,
                &given.statistics[i],
                row,
                &mut p,
            );
            at.fill_masked(dp, T::zero());
            let delta = dot(given.cotangent.row(i), given.output.row(i));
            match &self.dropout {
                None => pull_row(|_| T::one(), delta, &mut p, row, dp),
                Some(dropout) => {
                    let factor = |j| dropout.factor(i, keys.start + j);
                    pull_row(factor, delta, &mut p, row, dp);
                }
            }
            self.pull_pairs(&at, &mut p, &mut gradients.queries[own]);
            add(&mut gradients.keys[own_keys.clone()], &p);
        }
    }

    /// Replaces gradients of a row's exponents by those of the keys' magnitudes, where the two are
    /// not the same, and adds their sum to that of the query's.
    fn pull_pairs(&self, block: &RowBlock, du: &mut [T], query: &mut T) {
        if let Some(exponents) = self.score.exponents()
            && exponents.has_pairs()
        {
            for (j, du) in du.iter_mut().enumerate() {
                *du *= exponents.factor(block.i, block.start + j);
            }
            *query += sum(du);
        }
    }
}

/// A block between the products before it and after it.
struct Block<T> {
    queries: Range<usize>,
    keys: Range<usize>,
    /// Raw scores, then their gradients.
    x: Vec<T>,
    /// Gradients of the weights, then the weights after dropout.
    dp: Vec<T>,
}

/// Where the rows of `range` lie in an array of rows that begins with the row `first`.
fn elements(range: &Range<usize>, first: usize, width: usize) -> Range<usize> {
    (range.start - first) * width..(range.end - first) * width
}

/// One row: `p` becomes the gradient of the exponents, `row` that of the raw scores, `dp` the
/// weights after dropout.
#[inline(always)]
fn pull_row<T: Real>(
    factor: impl Fn(usize) -> T,
    delta: T,
    p: &mut [T],
    row: &mut [T],
    dp: &mut [T],
) {
    for (j, ((p, x), dp)) in p.iter_mut().zip(row).zip(dp).enumerate() {
        let factor = factor(j);
        let gradient = *dp * factor - delta;
        *dp = *p * factor;
        *x *= gradient;
        *p *= gradient;
    }
}

fn add<T: Real>(sum: &mut [T], more: &[T]) {
    sum.iter_mut().zip(more).for_each(|(a, &b)| *a += b);
}

fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    a.iter().zip(b).map(|(&a, &b)| a * b).sum()
}
