//! The backward pass of one chunk of queries.

use super::Head;
use super::terms::Terms;
use crate::call::blocks;
use crate::lanes::{add, dot};
use crate::normaliser::{BlockGradients, Row};
use crate::{Kind, Raw};
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::product::Right;
use bochner_numerics::{Buffer, Buffers, Mat, MatMut, Real, matmul_in};
use std::ops::Range;

/// The contributions of some queries and all keys to the gradients of one head.
pub(crate) struct HeadGradients<T> {
    first_query: usize,
    /// Columns of operands and of values.
    widths: (usize, usize),
    /// Along the operands of the queries.
    pub(crate) left: Buffer<T>,
    /// Along the operands of the keys.
    pub(crate) right: Buffer<T>,
    /// Along the values.
    pub(crate) values: Buffer<T>,
    /// Along the log-weights of the keys.
    pub(crate) keys: Buffer<T>,
    /// Along the bias: of each query, and of all together.
    pub(crate) bias: [Buffer<T>; 2],
    /// Along the parameters of the score.
    pub(crate) parameters: Vec<T>,
    /// Along the sink.
    pub(crate) sink: T,
}

impl<T: Real> HeadGradients<T> {
    /// Zeros for a head whose keys have no log-weights and whose pairs have no bias.
    pub(crate) fn without_terms(
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
            bias: [(); 2].map(|()| zeros(0, 0)),
            parameters: Vec::new(),
            sink: T::zero(),
        }
    }

    pub(crate) fn zeros(head: &Head<T>, queries: Range<usize>, wants_bias: bool) -> Self {
        let numbers = &head.workspace.numbers;
        let zeros = |rows, width, room| {
            let mut zeros = numbers.empty(room * width);
            zeros.resize(rows * width, T::zero());
            zeros
        };
        let (width, value_width) = (head.left.shape().1, head.values.shape().1);
        let (rows, keys) = (queries.len(), head.values.shape().0);
        let bias = head.bias.filter(|_| wants_bias);
        let (of_row, of_all) = bias.map_or((0, 0), |bias| bias.gradient_sizes());
        // The first chunk's are joined by those of all others.
        let room = if queries.start == 0 {
            head.rows.queries
        } else {
            rows
        };
        Self {
            first_query: queries.start,
            widths: (width, value_width),
            left: zeros(rows, width, room),
            right: zeros(keys, width, keys),
            values: zeros(keys, value_width, keys),
            keys: zeros(keys, 1, keys),
            bias: [zeros(rows, of_row, room), zeros(1, of_all, 1)],
            parameters: vec![T::zero(); head.kernel.score_parameters()],
            sink: T::zero(),
        }
    }

    /// The gradients of all queries and keys, to be added to.
    pub(crate) fn rows(&mut self) -> GradientRows<'_, T> {
        let [of_row, of_all] = &mut self.bias;
        GradientRows {
            first: (self.first_query, 0),
            widths: self.widths,
            left: &mut self.left,
            right: &mut self.right,
            values: &mut self.values,
            keys: &mut self.keys,
            bias: (of_row, of_all),
            parameters: &mut self.parameters,
        }
    }

    /// Appends the next chunk's rows and adds its sums.
    pub(crate) fn join(mut self, next: Self) -> Self {
        self.left.extend_from_slice(&next.left);
        add(&mut self.right, &next.right);
        add(&mut self.values, &next.values);
        add(&mut self.keys, &next.keys);
        self.bias[0].extend_from_slice(&next.bias[0]);
        add(&mut self.bias[1], &next.bias[1]);
        add(&mut self.parameters, &next.parameters);
        self.sink += next.sink;
        self
    }
}

/// The gradients of consecutive queries and of consecutive keys.
pub(crate) struct GradientRows<'a, T> {
    /// The first query and the first key.
    first: (usize, usize),
    widths: (usize, usize),
    left: &'a mut [T],
    right: &'a mut [T],
    values: &'a mut [T],
    keys: &'a mut [T],
    /// Only whole heads have a bias.
    bias: (&'a mut [T], &'a mut [T]),
    /// Only whole heads have parameters of their score.
    parameters: &'a mut [T],
}

impl<T: Real> GradientRows<'_, T> {
    /// The gradients before a query and a key, and the others.
    pub(crate) fn split_at(self, query: usize, key: usize) -> (Self, Self) {
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
            parameters: Default::default(),
        };
        (before, others)
    }

    /// The gradients along the operands of some queries.
    pub(crate) fn left_rows(&mut self, queries: &Range<usize>) -> &mut [T] {
        &mut self.left[elements(queries, self.first.0, self.widths.0)]
    }

    /// The gradients along the operands of some keys.
    pub(crate) fn right_rows(&mut self, keys: &Range<usize>) -> &mut [T] {
        &mut self.right[elements(keys, self.first.1, self.widths.0)]
    }

    /// The gradients along the values of some keys.
    pub(crate) fn value_rows(&mut self, keys: &Range<usize>) -> &mut [T] {
        &mut self.values[elements(keys, self.first.1, self.widths.1)]
    }

    /// Adds gradients along one key's value and log-weight.
    pub(crate) fn add_key(&mut self, key: usize, value: &[T], weight: T) {
        add(self.value_rows(&(key..key + 1)), value);
        self.keys[key - self.first.1] += weight;
    }
}

/// The results of the forward pass and the cotangent of its output, all for the whole head.
pub(crate) struct Cotangent<'a, T> {
    pub(crate) rows: &'a [Row<T>],
    pub(crate) output: Mat<'a, T>,
    pub(crate) cotangent: Mat<'a, T>,
}

impl<T: Real> Head<'_, T> {
    /// Returns the contribution of a chunk of queries to the gradients.
    ///
    /// With $P$ the weights, $G_{ij} = dO_i \cdot v_j - dO_i \cdot O_i$: $dV = P^T dO$,
    /// $du_{ij} = P_{ij} G_{ij}$, and $dx_{ij} = G_{ij}  \partial P_{ij} / \partial x_{ij}$ at a
    /// fixed normaliser.
    ///
    /// All queries meet a block of keys before the next one is fetched: keys bring more with them
    /// than queries do.
    pub(crate) fn backward(
        &self,
        chunk: Range<usize>,
        given: &Cotangent<T>,
        wants_bias: bool,
    ) -> HeadGradients<T> {
        let mut gradients = HeadGradients::zeros(self, chunk.clone(), wants_bias);
        let mut rows = gradients.rows();
        for keys in self.key_blocks(&chunk) {
            for queries in blocks(chunk.clone(), self.blocks.queries) {
                let keys = self.seen_of(&queries, &keys);
                if !keys.is_empty() {
                    self.backward_block((queries, keys), given, &mut rows);
                }
            }
        }
        gradients.sink = self.along_sink(chunk, given);
        gradients
    }

    /// The gradient along the sink.
    fn along_sink(&self, queries: Range<usize>, given: &Cotangent<T>) -> T {
        let Some(sink) = self.sink else {
            return T::zero();
        };
        let of_row = |i: usize| {
            let row = &given.rows[i];
            let delta = dot(given.cotangent.row(i), given.output.row(i));
            -self.normaliser.sink_weight(row, self.sink_score(sink, row)) * delta
        };
        queries.map(of_row).sum()
    }

    /// Adds the contributions of the pairs of a block.
    pub(crate) fn backward_block(
        &self,
        (queries, keys): (Range<usize>, Range<usize>),
        given: &Cotangent<T>,
        gradients: &mut GradientRows<T>,
    ) {
        let (rows, cols) = (queries.len(), keys.len());
        let numbers = &self.workspace.numbers;
        let (mut x, mut weights) = (numbers.any(rows * cols), numbers.any(rows * cols));
        let (x, weights) = (&mut x[..], &mut weights[..]);
        let cotangent = given.cotangent.row_range(queries.clone());
        let values = match &self.packed.values {
            Some(panels) => Right::from(panels.columns(keys.clone())),
            None => self.values.row_range(keys.clone()).t().into(),
        };
        let (one, zero) = (T::one(), T::zero());
        let target = MatMut::new(weights, rows, cols);
        matmul_in(numbers, one, cotangent, values, zero, target);
        self.products(queries.clone(), &keys, x);
        let near = self.pull_stripes((&queries, &keys), given, (x, weights), gradients);

        let weights = Mat::new(weights, rows, cols);
        let target = MatMut::new(gradients.value_rows(&keys), cols, self.value_width());
        matmul_in(numbers, one, weights.t(), cotangent, one, target);
        let (left, right) = (
            self.left.row_range(queries.clone()),
            self.right.row_range(keys.clone()),
        );
        let factor = match self.kernel.raw() {
            Raw::Product => T::of(self.kernel.scale(self.width)),
            Raw::SquaredDistance => {
                let ((q, k), width) = (gradients.first, gradients.widths.0);
                let d_left = &mut gradients.left[elements(&queries, q, width)];
                let d_right = &mut gradients.right[elements(&keys, k, width)];
                self.points()
                    .pull((&queries, &keys), &near, x, [d_left, d_right]);
                T::of(-2.0)
            }
        };
        let (dx, width) = (Mat::new(x, rows, cols), gradients.widths.0);
        let target = MatMut::new(gradients.left_rows(&queries), rows, width);
        matmul_in(numbers, factor, dx, right, one, target);
        let target = MatMut::new(gradients.right_rows(&keys), cols, width);
        matmul_in(numbers, factor, dx.t(), left, one, target);
    }

    /// Replaces the products of a block by the gradients along raw scores, and the gradients along weights by the
    /// weights after dropout; adds what flows into terms and parameters. Returns the near pairs.
    fn pull_stripes(
        &self,
        (queries, keys): (&Range<usize>, &Range<usize>),
        given: &Cotangent<T>,
        (x, weights): (&mut [T], &mut [T]),
        gradients: &mut GradientRows<T>,
    ) -> Vec<(usize, usize)> {
        let (rows, cols) = (&given.rows[queries.clone()], keys.len());
        let (mut terms, mut near) = (Terms::new(self, cols), Vec::new());
        let mut room = Room::default();
        let mut start = 0;
        while start < rows.len() {
            let stripe = start..self.stripe_end(rows, start, cols);
            start = stripe.end;
            let own = queries.start + stripe.start..queries.start + stripe.end;
            let pairs = stripe.start * cols..stripe.end * cols;
            let (x, weights) = (&mut x[pairs.clone()], &mut weights[pairs]);
            self.complete(own.clone(), keys, x, Some(&mut near));
            let rows = &rows[stripe];
            let memory = (&mut terms, &mut room);
            self.pull_stripe((own, keys), given, rows, (x, weights), memory, gradients);
        }
        near
    }

    fn pull_stripe(
        &self,
        (queries, keys): (Range<usize>, &Range<usize>),
        given: &Cotangent<T>,
        rows: &[Row<T>],
        (x, weights): (&mut [T], &mut [T]),
        (terms, room): (&mut Terms<T>, &mut Room<T>),
        gradients: &mut GradientRows<T>,
    ) {
        let (pairs, cols) = (x.len(), keys.len());
        let is_weight = self.normaliser.kind() == Kind::Weight;
        let is_raw = self.kernel.scores_are_raw();
        let (parameters, base) = (gradients.parameters.len(), self.normaliser.ln_base());
        let has_own_terms = self.has_terms() && (is_weight || base != 1.0);
        room.make(pairs, parameters, !is_raw, has_own_terms);
        let tile = self.tile(queries.start, keys);
        for n in 0..parameters {
            self.kernel
                .parameter_slopes(&tile, n, x, &mut room.parameters[n * pairs..][..pairs]);
        }
        // Without scores of the kernel's own, x is changed in place.
        let mut slopes = None;
        let scores = match is_raw {
            true => x,
            false => {
                self.kernel.slopes(&tile, x, &mut room.scores);
                slopes = Some(x);
                &mut room.scores[..]
            }
        };
        let factors = self.add_terms(queries.clone(), keys, rows, scores, terms);
        let deltas = queries
            .clone()
            .map(|i| dot(given.cotangent.row(i), given.output.row(i)));
        room.deltas.clear();
        room.deltas.extend(deltas);
        if let Some(dropout) = self.dropout {
            room.dropout.resize(pairs, T::zero());
            for (i, factors) in queries.clone().zip(room.dropout.chunks_exact_mut(cols)) {
                dropout.fill(i, keys.start, factors);
            }
        }
        let of_terms = (is_weight && self.has_terms()).then_some(&mut room.terms[..]);
        self.normaliser.pull(BlockGradients {
            scores: &mut *scores,
            weights,
            terms: of_terms,
            keys: cols,
            factors,
            rows,
            deltas: &room.deltas,
            dropout: self.dropout.map(|_| &room.dropout[..pairs]),
        });
        if self.has_terms() {
            if !is_weight {
                // Terms are logarithms to the base e, whatever the base of the logits.
                let all = room.terms.iter_mut().zip(&*scores);
                all.for_each(|(term, &x)| *term = x / T::of(base));
            }
            let of_terms = if has_own_terms {
                &room.terms[..]
            } else {
                &*scores
            };
            self.pull_terms(queries.clone(), keys, of_terms, gradients);
        }
        for ((i, scores), row) in queries.zip(scores.chunks_exact_mut(cols)).zip(rows) {
            match row.is_level {
                true => scores.fill(T::zero()),
                // A sum has a slope along a weight of zero, too.
                false => self.rows.fill_hidden(i, keys, scores, T::zero()),
            }
        }
        for (n, gradient) in gradients.parameters.iter_mut().enumerate() {
            instructions::run(Dot {
                a: &room.parameters[n * pairs..][..pairs],
                b: scores,
                sum: gradient,
            });
        }
        if let Some(slopes) = slopes {
            instructions::run(Chain {
                slopes,
                gradients: scores,
            });
        }
    }

    /// Adds gradients along the logarithms of factors to those of the log-weights and of the bias.
    fn pull_terms(
        &self,
        queries: Range<usize>,
        keys: &Range<usize>,
        of_terms: &[T],
        gradients: &mut GradientRows<T>,
    ) {
        let ((q, k), size) = (gradients.first, gradients.left.len() / gradients.widths.0);
        // Empty unless the bias' gradients are wanted.
        let of_row = gradients.bias.0.len() / size.max(1);
        let wants_bias = of_row > 0 || !gradients.bias.1.is_empty();
        let of_keys = &mut gradients.keys[elements(keys, k, 1)];
        for (i, terms) in queries.zip(of_terms.chunks_exact(keys.len())) {
            add(of_keys, terms);
            if let Some(bias) = self.bias.filter(|_| wants_bias) {
                let row = &mut gradients.bias.0[(i - q) * of_row..][..of_row];
                bias.pull_back(i, keys.clone(), terms, row, gradients.bias.1);
            }
        }
    }
}

/// Room for the pairs of a stripe.
#[derive(Default)]
struct Room<T> {
    scores: Vec<T>,
    terms: Vec<T>,
    /// The slopes along each parameter.
    parameters: Vec<T>,
    deltas: Vec<T>,
    dropout: Vec<T>,
}

impl<T: Real> Room<T> {
    fn make(&mut self, pairs: usize, parameters: usize, scores: bool, terms: bool) {
        self.parameters.resize(parameters * pairs, T::zero());
        self.scores
            .resize(if scores { pairs } else { 0 }, T::zero());
        self.terms.resize(if terms { pairs } else { 0 }, T::zero());
    }
}

/// Multiplies slopes by gradients; where there is no gradient, a slope does not matter.
struct Chain<'a, T> {
    slopes: &'a mut [T],
    gradients: &'a [T],
}

impl<T: Real> Task for Chain<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        for (slope, &gradient) in self.slopes.iter_mut().zip(self.gradients) {
            let product = *slope * gradient;
            *slope = if gradient == T::zero() {
                gradient
            } else {
                product
            };
        }
    }
}

/// Adds an inner product, in which zeros of `b` hide whatever `a` holds.
struct Dot<'a, T> {
    a: &'a [T],
    b: &'a [T],
    sum: &'a mut T,
}

impl<T: Real> Task for Dot<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let term = |a: T, b: T| if b == T::zero() { b } else { a * b };
        let mut lanes = [T::zero(); 16];
        let ((a, a_rest), (b, b_rest)) = (self.a.as_chunks::<16>(), self.b.as_chunks::<16>());
        for (a, b) in a.iter().zip(b) {
            for ((lane, &a), &b) in lanes.iter_mut().zip(a).zip(b) {
                *lane += term(a, b);
            }
        }
        let rest = a_rest.iter().zip(b_rest).map(|(&a, &b)| term(a, b));
        *self.sum += lanes.into_iter().chain(rest).sum();
    }
}

/// The place of the rows of `range` in an array of rows that begins with the row `first`.
fn elements(range: &Range<usize>, first: usize, width: usize) -> Range<usize> {
    (range.start - first) * width..(range.end - first) * width
}
