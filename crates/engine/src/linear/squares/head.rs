//! One head in linear time: keys are summed up, and queries read the sums.
//!
//! The backward pass is the same two steps, with queries and keys exchanged. With $y_j = [v_j | 1]$ and
//! $u_i = [dO_i | -dO_i \cdot O_i] / Z_i$ the gradient of an unnormalised
//! weight is $u_i \cdot y_j$. Queries read the sums S over keys, $d\psi_i = S u_i$; keys read the
//! sums $W = \sum_i \psi_i u_i^T$ over the queries that see them, $d\psi_j = g_j W y_j$ and
//! $dy_j = g_j (W^T \psi_j + e \sum_i u_i)$, of which $dm_j = y_j \cdot dy_j$.

use super::order::Squares;
use super::plan::Plan;
use super::sums::{Augmented, Sums};
use crate::lanes::dot;
use crate::linear::{Course, PrefixSums, RunningSums as _, Span};
use crate::normaliser::Row;
use crate::pairwise::{Cotangent, GradientRows, Head, OutputRows};
use bochner_numerics::operations::record;
use bochner_numerics::{Buffers, Mat, MatMut, Operations, Real, elementary, matmul_in};
use std::ops::Range;

/// One head in the linear-time form.
pub(super) struct LinearTime<'a, T> {
    pub(super) head: Head<'a, T>,
    /// The root of the factor of a product of operands: scaled by it, these have f itself as their product.
    scale: T,
    floor: T,
    plan: &'a Plan,
}

impl<'a, T: Real> LinearTime<'a, T> {
    /// Returns a head with a plan made for it.
    pub(super) fn new(head: Head<'a, T>, plan: &'a Plan) -> Self {
        let square = head.kernel.square().expect("checked with the settings");
        let (scale, floor) = (T::of(square.scale.sqrt()), T::of(square.floor));
        Self {
            head,
            scale,
            floor,
            plan,
        }
    }

    fn numbers(&self) -> &'a Buffers<T> {
        &self.head.workspace.numbers
    }

    /// The width of operands, of which either side may have none at a step of decoding.
    fn width(&self) -> usize {
        self.head.kernel.operand_width(self.head.width)
    }

    /// $g_j [v_j | 1]$.
    fn weighted_values(&self, keys: &Range<usize>, reference: f64) -> Augmented<T> {
        let width = self.head.values.shape().1;
        record(Operations::multiply_adds(keys.len() * width));
        let mut g = self.numbers().filled(keys.len(), T::one());
        if let Some(weights) = self.head.key_weights {
            let mut factors = self.head.workspace.pool().empty(keys.len());
            factors.extend(
                weights[keys.clone()]
                    .iter()
                    .map(|u| (u - reference).min(0.0)),
            );
            elementary::exp_in_place(&mut factors);
            g.iter_mut().zip(&factors).for_each(|(g, &x)| *g = T::of(x));
        }
        let mut wide = self.numbers().empty(keys.len() * width);
        for (j, &g) in keys.clone().zip(g.iter()) {
            wide.extend(self.head.values.row(j).iter().map(|&v| g * v));
        }
        Augmented { wide, last: g }
    }

    /// Adds what a span's queries make of its own keys, pair by pair.
    fn meet(&self, span: &Span, output: &mut [T], rows: &mut [Row<T>]) {
        let Span { queries, keys, .. } = span;
        if !queries.is_empty() && !keys.is_empty() {
            let weights = self.head.unnormalised(queries.clone(), keys, rows);
            let weights = Mat::new(&weights, queries.len(), keys.len());
            let values = self.head.values.row_range(keys.clone());
            let target = MatMut::new(output, queries.len(), values.shape().1);
            matmul_in(self.numbers(), T::one(), weights, values, T::one(), target);
        }
    }

    /// $u_i \exp(\text{reference} - r_i)$.
    fn cotangents(
        &self,
        queries: &Range<usize>,
        given: &Cotangent<T>,
        reference: f64,
    ) -> Augmented<T> {
        let numbers = self.numbers();
        let mut u = Augmented {
            wide: numbers.empty(queries.len() * self.head.values.shape().1),
            last: numbers.empty(queries.len()),
        };
        for i in queries.clone() {
            let (row, cotangent) = (&given.rows[i], given.cotangent.row(i));
            let factor = match row.sum == T::zero() {
                true => T::zero(),
                false => T::of((reference - row.reference).exp()) / row.sum,
            };
            let delta = dot(given.output.row(i), cotangent);
            u.wide.extend(cotangent.iter().map(|&c| c * factor));
            u.last.push(-delta * factor);
        }
        u
    }
}

impl<T: Real> PrefixSums<T> for LinearTime<'_, T> {
    type Sums = Sums<T>;
    type Task = Squares<T>;

    fn course(&self) -> &Course {
        &self.plan.course
    }

    fn task(&self) -> Squares<T> {
        Squares::new(self.plan.order, self.numbers(), self.width(), self.scale)
    }

    fn zeros(&self) -> Sums<T> {
        let count = self.plan.order.count(self.width());
        Sums::zeros(self.numbers(), count, self.head.values.shape().1)
    }

    /// Relative to the last reference at once, so that no block rescales the sums.
    fn zeros_before(&self, last: &Span) -> Sums<T> {
        Sums {
            reference: self.plan.after(last),
            ..self.zeros()
        }
    }

    fn add(&self, squares: &mut Squares<T>, span: &Span, sums: &mut Sums<T>) {
        sums.raise(sums.reference.max(self.plan.after(span)));
        let weighted = self.weighted_values(&span.keys, sums.reference);
        let squares = squares.of(self.head.right.row_range(span.keys.clone()));
        sums.add(squares, &weighted, self.numbers());
    }

    fn read(&self, squares: &mut Squares<T>, span: &Span, sums: &Sums<T>, out: OutputRows<'_, T>) {
        let OutputRows { output, rows } = out;
        let (width, queries) = (self.head.values.shape().1, span.queries.clone());
        let references = &self.plan.rows[queries.clone()];
        for (row, &reference) in rows.iter_mut().zip(references) {
            *row = Row::new(if reference == f64::NEG_INFINITY {
                0.0
            } else {
                reference
            });
        }
        let output = output.zeros();
        self.meet(span, output, rows);
        if !sums.is_empty() && !queries.is_empty() {
            let count = queries.len();
            record(
                Operations::multiply_adds(2 * count * (width + 1))
                    + Operations::exponentials(count),
            );
            let squares = squares.of(self.head.left.row_range(queries));
            let read = squares.read(&sums.moments, self.numbers());
            let rows = output.chunks_exact_mut(width).zip(rows.iter_mut());
            let read = read.wide.chunks_exact(width).zip(read.last.iter());
            for ((out, row), read) in rows.zip(read) {
                let factor = T::of((sums.reference - row.reference).exp());
                add_row(out, row, factor, read, &sums.totals, self.floor);
            }
        }
        for (out, row) in output.chunks_exact_mut(width).zip(rows) {
            if row.sum > T::zero() {
                out.iter_mut().for_each(|x| *x /= row.sum);
            }
        }
    }

    fn pull_queries(
        &self,
        squares: &mut Squares<T>,
        span: &Span,
        (sums, own): (&Sums<T>, &mut Sums<T>),
        given: &Cotangent<'_, T>,
        gradients: &mut GradientRows<T>,
    ) {
        let Span { queries, keys } = span;
        if queries.is_empty() {
            return;
        }
        if !keys.is_empty() {
            let pairs = (queries.clone(), keys.clone());
            self.head.backward_block(pairs, given, gradients);
        }
        if !sums.is_empty() {
            let u = self.cotangents(queries, given, sums.reference);
            let gradient = gradients.left_rows(queries);
            squares
                .of(self.head.left.row_range(queries.clone()))
                .pull_back(&sums.moments, &u, gradient);
        }
        if !own.is_empty() {
            self.add_queries(squares, queries, given, own);
        }
    }

    fn add_queries(
        &self,
        squares: &mut Squares<T>,
        queries: &Range<usize>,
        given: &Cotangent<'_, T>,
        sums: &mut Sums<T>,
    ) {
        let u = self.cotangents(queries, given, sums.reference);
        let squares = squares.of(self.head.left.row_range(queries.clone()));
        sums.add(squares, &u, self.numbers());
    }

    fn pull_keys(
        &self,
        squares: &mut Squares<T>,
        keys: &Range<usize>,
        sums: &Sums<T>,
        gradients: &mut GradientRows<T>,
    ) {
        let weighted = self.weighted_values(keys, sums.reference);
        squares.of(self.head.right.row_range(keys.clone()));
        let gradient = gradients.right_rows(keys);
        let numbers = self.numbers();
        let mut dy = squares.read_and_pull_back(&sums.moments, &weighted, gradient, numbers);
        let width = self.head.values.shape().1;
        let rows = dy.wide.chunks_exact_mut(width).zip(dy.last.iter());
        for ((j, &g), (dy, &last)) in keys.clone().zip(weighted.last.iter()).zip(rows) {
            for (dy, &total) in dy.iter_mut().zip(sums.totals.wide.iter()) {
                *dy = g * (*dy + self.floor * total);
            }
            let last = g * (last + self.floor * sums.totals.last[0]);
            let exponent = dot(self.head.values.row(j), dy) + last;
            gradients.add_key(j, dy, exponent);
        }
    }
}

/// Adds what a row reads to what it has, with the floor's part, below which no normaliser lies.
#[inline(always)]
fn add_row<T: Real>(
    output: &mut [T],
    row: &mut Row<T>,
    factor: T,
    (read, &kernel): (&[T], &T),
    totals: &Augmented<T>,
    floor: T,
) {
    for (out, (&read, &total)) in output.iter_mut().zip(read.iter().zip(totals.wide.iter())) {
        *out += factor * (read + floor * total);
    }
    row.sum += factor * (kernel.max(T::zero()) + floor * totals.last[0]);
}
