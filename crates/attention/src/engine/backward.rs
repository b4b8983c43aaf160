//! The backward pass of one chunk of queries.

use super::distance::pull_distances;
use super::lanes::add;
use super::product::add_product;
use super::sweep::PullBack;
use super::{Head, RowStatistics, blocks};
use crate::bias::HeadBias;
use crate::score::Score;
use bochner_numerics::product::Right;
use bochner_numerics::{Buffer, Buffers, Mat, MatMut, Real, instructions, matmul};
use std::ops::Range;

/// What some queries and all keys contribute to the gradients of one head.
pub(crate) struct HeadGradients<T> {
    first_query: usize,
    /// Columns of operands and of values.
    widths: (usize, usize),
    /// With respect to the queries' rows of `left`.
    pub(crate) left: Buffer<T>,
    /// With respect to the keys' rows of `right`.
    pub(crate) right: Buffer<T>,
    /// With respect to the keys' values.
    pub(crate) values: Buffer<T>,
    /// With respect to the keys' exponents.
    pub(crate) keys: Buffer<T>,
    /// With respect to the bias: of each query, and of all together.
    pub(crate) bias: (Buffer<T>, Buffer<T>),
}

impl<T: Real> HeadGradients<T> {
    /// Zeros for a head whose keys have no exponents and whose pairs have no bias.
    pub(super) fn without_exponents(
        numbers: &Buffers<T>,
        [queries, keys]: [usize; 2],
        widths: (usize, usize),
    ) -> Self {
        let zeros = |rows, width| numbers.filled(rows * width, T::zero());
        Self {
            first_query: 0,
            widths,
            left: zeros(queries, widths.0),
            right: zeros(keys, widths.0),
            values: zeros(keys, widths.1),
            keys: zeros(keys, 1),
            bias: (zeros(0, 0), zeros(0, 0)),
        }
    }

    pub(super) fn zeros<S: Score<T>>(head: &Head<T, S>, queries: Range<usize>) -> Self {
        let zeros = |rows, width, room| {
            let mut zeros = head.workspace.numbers.empty(room * width);
            zeros.resize(rows * width, T::zero());
            zeros
        };
        let (width, value_width) = (head.width(), head.value_width());
        let (rows, keys) = (queries.len(), head.values.shape().0);
        let (each, all) = head.bias.map_or((0, 0), HeadBias::gradient_sizes);
        // The first chunk's are joined by those of all others.
        let room = match queries.start {
            0 => head.rows.queries,
            _ => rows,
        };
        Self {
            first_query: queries.start,
            widths: (width, value_width),
            left: zeros(rows, width, room),
            right: zeros(keys, width, keys),
            values: zeros(keys, value_width, keys),
            keys: zeros(keys, 1, keys),
            bias: (zeros(rows, each, room), zeros(1, all, 1)),
        }
    }

    /// The gradients of all queries and keys, to be added to.
    pub(super) fn rows(&mut self) -> GradientRows<'_, T> {
        GradientRows {
            first: (self.first_query, 0),
            widths: self.widths,
            left: &mut self.left,
            right: &mut self.right,
            values: &mut self.values,
            keys: &mut self.keys,
            bias: (&mut self.bias.0, &mut self.bias.1),
        }
    }

    /// Appends the next chunk's rows and adds its sums.
    pub(crate) fn join(&mut self, next: Self) {
        self.left.extend_from_slice(&next.left);
        add(&mut self.right, &next.right);
        add(&mut self.values, &next.values);
        add(&mut self.keys, &next.keys);
        self.bias.0.extend_from_slice(&next.bias.0);
        add(&mut self.bias.1, &next.bias.1);
    }
}

/// The gradients of consecutive queries and of consecutive keys.
pub(super) struct GradientRows<'a, T> {
    /// The first query and the first key.
    first: (usize, usize),
    widths: (usize, usize),
    left: &'a mut [T],
    right: &'a mut [T],
    values: &'a mut [T],
    keys: &'a mut [T],
    /// Only whole heads have a bias.
    bias: (&'a mut [T], &'a mut [T]),
}

impl<T: Real> GradientRows<'_, T> {
    /// The gradients before a query and a key, and the others.
    pub(super) fn split_at(self, query: usize, key: usize) -> (Self, Self) {
        let ((q, k), (width, value_width)) = (self.first, self.widths);
        let (left, more_left) = self.left.split_at_mut((query - q) * width);
        let (right, more_right) = self.right.split_at_mut((key - k) * width);
        let (values, more_values) = self.values.split_at_mut((key - k) * value_width);
        let (keys, more_keys) = self.keys.split_at_mut(key - k);
        let before = Self {
            left,
            right,
            values,
            keys,
            ..self
        };
        let others = Self {
            first: (query, key),
            widths: self.widths,
            left: more_left,
            right: more_right,
            values: more_values,
            keys: more_keys,
            bias: Default::default(),
        };
        (before, others)
    }

    /// The rows of `left` of some queries.
    pub(super) fn left_rows(&mut self, queries: &Range<usize>) -> &mut [T] {
        &mut self.left[elements(queries, self.first.0, self.widths.0)]
    }

    /// The rows of `right` of some keys.
    pub(super) fn right_rows(&mut self, keys: &Range<usize>) -> &mut [T] {
        &mut self.right[elements(keys, self.first.1, self.widths.0)]
    }

    /// The values of some keys.
    pub(super) fn value_rows(&mut self, keys: &Range<usize>) -> &mut [T] {
        &mut self.values[elements(keys, self.first.1, self.widths.1)]
    }

    /// Adds gradients with respect to one key's value and exponent.
    pub(super) fn add_key(&mut self, key: usize, value: &[T], exponent: T) {
        add(self.value_rows(&(key..key + 1)), value);
        self.keys[key - self.first.1] += exponent;
    }
}

/// The forward pass's results and the cotangent of its output, all for the whole head.
pub(crate) struct Cotangent<'a, T> {
    pub(crate) statistics: &'a [RowStatistics<T>],
    pub(crate) output: Mat<'a, T>,
    pub(crate) cotangent: Mat<'a, T>,
}

impl<T: Real, S: Score<T>> Head<'_, T, S> {
    /// The contribution of a chunk of queries to the gradients.
    ///
    /// With $P$ the weights, $G_{ij} = dO_i \cdot v_j - dO_i \cdot O_i$: $dV = P^T dO$,
    /// $du_{ij} = P_{ij} G_{ij}$, and $dx_{ij} = G_{ij} \partial P_{ij} / \partial x_{ij}$ at a
    /// fixed normaliser.
    ///
    /// All queries meet a block of keys before the next one is fetched: keys bring more with them
    /// than queries do.
    pub(crate) fn backward(&self, chunk: Range<usize>, given: &Cotangent<T>) -> HeadGradients<T> {
        let mut gradients = HeadGradients::zeros(self, chunk.clone());
        let mut rows = gradients.rows();
        let mut scratch = Scratch::default();
        for keys in self.key_blocks(&chunk) {
            for queries in blocks(chunk.clone(), self.blocks.queries) {
                let keys = self.seen_of(&queries, &keys);
                if !keys.is_empty() {
                    self.backward_block((queries, keys), given, &mut rows, &mut scratch);
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
        gradients: &mut GradientRows<T>,
        scratch: &mut Scratch<T>,
    ) {
        let (rows, cols, width) = (queries.len(), keys.len(), self.width());
        let (each, _) = self.bias.map_or((0, 0), HeadBias::gradient_sizes);
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
            d_keys: &mut gradients.keys[elements(&keys, gradients.first.1, 1)],
            d_bias: (
                &mut gradients.bias.0[elements(&queries, gradients.first.0, each)],
                gradients.bias.1,
            ),
        });

        let (dx, weights) = (Mat::new(x, rows, cols), Mat::new(dp, rows, cols));
        let numbers = &self.workspace.numbers;
        let d_values = gradients.value_rows(&keys);
        add_product(numbers, weights.t(), cotangent, true, d_values);
        let (left, right) = (
            self.left.row_range(queries.clone()),
            self.right.row_range(keys.clone()),
        );
        if !S::RAW.is_product() {
            let d_left = &mut gradients.left[elements(&queries, gradients.first.0, width)];
            let d_right = &mut gradients.right[elements(&keys, gradients.first.1, width)];
            pull_distances(dx, left, right, d_left, d_right);
        } else {
            let (d_left, finite) = (gradients.left_rows(&queries), self.finite);
            add_product(numbers, dx, right, finite.right, d_left);
            let d_right = gradients.right_rows(&keys);
            add_product(numbers, dx.t(), left, finite.left, d_right);
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
