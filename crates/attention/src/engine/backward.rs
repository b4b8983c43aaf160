//! The backward pass of one chunk of queries.

use super::distance::pull_distances;
use super::product::add_product;
use super::sweep::{PullBack, add};
use super::{Head, QUERY_BLOCK, RowStatistics, Score, blocks};
use bochner_numerics::product::Right;
use bochner_numerics::{Mat, MatMut, Real, instructions, matmul};
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
    ///
    /// All queries meet a block of keys before the next one is fetched: keys bring more with them
    /// than queries do.
    pub(crate) fn backward(&self, chunk: Range<usize>, given: &Cotangent<T>) -> HeadGradients<T> {
        let all = 0..self.right.shape().0;
        let mut gradients = HeadGradients::zeros(self, chunk.clone(), all);
        let mut scratch = Scratch::default();
        for keys in self.key_blocks(&chunk) {
            for queries in blocks(chunk.clone(), QUERY_BLOCK) {
                if self.last_limit(&queries) > keys.start {
                    let pairs = (queries, keys.clone());
                    self.backward_block(pairs, given, &mut gradients, &mut scratch);
                }
            }
        }
        gradients
    }

    /// What the pairs of a block contribute.
    pub(super) fn backward_block(
        &self,
        (queries, keys): (Range<usize>, Range<usize>),
        given: &Cotangent<T>,
        gradients: &mut HeadGradients<T>,
        scratch: &mut Scratch<T>,
    ) {
        let (rows, cols, width) = (queries.len(), keys.len(), self.width());
        let (x, dp) = scratch.pairs(rows * cols);
        let cotangent = given.cotangent.row_range(queries.clone());
        let values = match &self.packed.values {
            Some(panels) => Right::from(panels.columns(keys.clone())),
            None => self.values.row_range(keys.clone()).t().into(),
        };
        let target = MatMut::new(dp, rows, cols);
        matmul(T::one(), cotangent, values, T::zero(), target);
        self.raw_scores(queries.clone(), &keys, x);
        instructions::run(PullBack {
            head: self,
            queries: queries.clone(),
            keys: &keys,
            statistics: &given.statistics[queries.clone()],
            output: given.output.row_range(queries.clone()),
            cotangent,
            x,
            dp,
            d_queries: &mut gradients.queries[elements(&queries, gradients.first.0, 1)],
            d_keys: &mut gradients.keys[elements(&keys, gradients.first.1, 1)],
        });

        let (dx, weights) = (Mat::new(x, rows, cols), Mat::new(dp, rows, cols));
        let numbers = &self.workspace.numbers;
        let d_values = gradients.value_rows(&keys, self.value_width());
        add_product(numbers, weights.t(), cotangent, true, d_values);
        let (left, right) = (
            self.left.row_range(queries.clone()),
            self.right.row_range(keys.clone()),
        );
        let (d_left, d_right) = gradients.operand_rows(&queries, &keys, width);
        if let Score::Periodic { .. } = self.score {
            pull_distances(dx, left, right, d_left, d_right);
        } else {
            add_product(numbers, dx, right, self.finite.right, d_left);
            add_product(numbers, dx.t(), left, self.finite.left, d_right);
        }
    }
}

/// Room for the pairs of a block.
#[derive(Default)]
pub(super) struct Scratch<T> {
    /// Raw scores, then their gradients.
    x: Vec<T>,
    /// Gradients of the weights, then the weights after dropout.
    dp: Vec<T>,
}

impl<T: Real> Scratch<T> {
    fn pairs(&mut self, count: usize) -> (&mut [T], &mut [T]) {
        for room in [&mut self.x, &mut self.dp] {
            if room.len() < count {
                room.resize(count, T::zero());
            }
        }
        (&mut self.x[..count], &mut self.dp[..count])
    }
}

/// Where the rows of `range` lie in an array of rows that begins with the row `first`.
fn elements(range: &Range<usize>, first: usize, width: usize) -> Range<usize> {
    (range.start - first) * width..(range.end - first) * width
}
