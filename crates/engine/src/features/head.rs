//! One head in linear time.

use super::Head;
use super::block::{Block, Shift};
use super::pairs::{Factors, inverse, normalise};
use super::sums::Sums;
use crate::lanes::dot;
use crate::linear::{Course, PrefixSums, RunningSums, Span};
use crate::normaliser::Row;
use crate::pairwise::{Cotangent, GradientRows, OutputRows};
use bochner_numerics::operations::record;
use bochner_numerics::{Buffer, Mat, MatMut, Operations, Real, matmul_in};
use std::ops::Range;

/// One head with the order of its sums.
pub(super) struct LinearTime<'a, T: Real> {
    pub(super) head: Head<'a, T>,
    pub(super) course: Course,
}

/// State that a task carries from one span of the sequence to the next.
pub(super) struct Task<T> {
    /// The keys of the present span, if its queries have met them.
    keys: Option<Block<T>>,
    /// The gradients along the parameters.
    pub(super) parameters: Buffer<T>,
}

impl<T: Real> LinearTime<'_, T> {
    fn width(&self) -> usize {
        self.head.inputs.v.shape().1
    }

    /// $[dO_i | -dO_i \cdot O_i] / Z_i$ of some queries.
    fn cotangents(&self, queries: &Range<usize>, given: &Cotangent<T>) -> (Buffer<T>, Buffer<T>) {
        let numbers = self.head.numbers();
        let mut wide = numbers.empty(queries.len() * self.width());
        let mut last = numbers.empty(queries.len());
        for i in queries.clone() {
            let (inverse, cotangent) = (inverse(&given.rows[i]), given.cotangent.row(i));
            wide.extend(cotangent.iter().map(|&g| g * inverse));
            last.push(-dot(given.output.row(i), cotangent) * inverse);
        }
        (wide, last)
    }

    /// The cotangents of multiples of features, $S y_i$, given rows $y = [r | s]$.
    fn read_back(&self, sums: &Sums<T>, wide: Mat<T>, last: Option<&[T]>) -> Buffer<T> {
        let (numbers, rows, features) = (self.head.numbers(), wide.shape().0, sums.last.len());
        let mut cotangent = numbers.any(rows * features);
        sums.multiply_last(last, &mut cotangent);
        let target = MatMut::new(&mut cotangent, rows, features);
        matmul_in(numbers, T::one(), wide, sums.matrix().t(), T::one(), target);
        cotangent
    }
}

impl<T: Real> PrefixSums<T> for LinearTime<'_, T> {
    type Sums = Sums<T>;
    type Task = Task<T>;

    fn course(&self) -> &Course {
        &self.course
    }

    fn task(&self) -> Task<T> {
        Task {
            keys: None,
            parameters: self
                .head
                .numbers()
                .filled(self.head.map.parameters(), T::zero()),
        }
    }

    fn zeros(&self) -> Sums<T> {
        let head = &self.head;
        Sums::zeros(head.map.features(), self.width(), head.numbers())
    }

    fn add(&self, task: &mut Task<T>, span: &Span, sums: &mut Sums<T>) {
        let met = task.keys.take();
        let block = met.unwrap_or_else(|| self.head.of_keys(span.keys.clone()));
        let values = self.head.inputs.v.row_range(span.keys.clone());
        sums.add_keys(&block, values, self.head.numbers());
    }

    fn read(&self, task: &mut Task<T>, span: &Span, sums: &Sums<T>, out: OutputRows<'_, T>) {
        let (output, rows) = (out.output.zeros(), out.rows);
        rows.fill(Row::new(0.0));
        if rows.is_empty() {
            return;
        }
        let (head, numbers) = (&self.head, self.head.numbers());
        let q = head.of_queries(span.queries.clone());
        if !sums.is_empty() {
            let levels = q.tops(Shift::Plus(&sums.references), numbers);
            let multiples = q.relative(Shift::Plus(&sums.references), &levels, numbers);
            record(Operations::multiply_adds(q.len()));
            sums.normalise(multiples.numbers(), &levels, rows);
            let multiples = Mat::new(multiples.numbers(), rows.len(), q.features);
            let (one, target) = (T::one(), MatMut::new(output, rows.len(), self.width()));
            matmul_in(numbers, one, multiples, sums.matrix(), T::zero(), target);
        }
        if !span.keys.is_empty() {
            let k = Factors::new(head.of_keys(span.keys.clone()), numbers);
            let q = Factors::new(q, numbers);
            let values = head.inputs.v.row_range(span.keys.clone());
            head.meet(first_of(span), (&q, &k), values, rows, output);
            task.keys = Some(k.block);
        }
        normalise(output, rows);
    }

    fn pull_queries(
        &self,
        task: &mut Task<T>,
        span: &Span,
        (sums, own): (&Sums<T>, &mut Sums<T>),
        given: &Cotangent<'_, T>,
        gradients: &mut GradientRows<T>,
    ) {
        let rows = &given.rows[span.queries.clone()];
        if rows.is_empty() {
            return;
        }
        let (head, numbers) = (&self.head, self.head.numbers());
        let mut q = head.of_queries(span.queries.clone());
        let mut of_q = numbers.filled(q.len(), T::zero());
        if !sums.is_empty() {
            let levels: Vec<T> = rows.iter().map(|row| row.largest).collect();
            let (wide, last) = self.cotangents(&span.queries, given);
            let wide = Mat::new(&wide, rows.len(), self.width());
            let multiples = q.relative(Shift::Plus(&sums.references), &levels, numbers);
            let cotangent = self.read_back(sums, wide, Some(&last));
            multiples.pull(&cotangent, &mut of_q);
            if !own.is_empty() {
                let multiples = match own.references == sums.references {
                    true => multiples,
                    false => q.relative(Shift::Plus(&own.references), &levels, numbers),
                };
                own.add(multiples.numbers(), wide, Some(&last), numbers);
            }
        }
        if !span.keys.is_empty() {
            let k = Factors::new(head.of_keys(span.keys.clone()), numbers);
            let mut of_k = numbers.filled(k.block.len(), T::zero());
            let factors = Factors::new(q, numbers);
            let values = head.inputs.v.row_range(span.keys.clone());
            let (dv, of_both) = (
                gradients.value_rows(&span.keys),
                (&mut of_q[..], &mut of_k[..]),
            );
            head.pull_pairs(first_of(span), (&factors, &k), values, given, of_both, dv);
            let dk = gradients.right_rows(&span.keys);
            head.pull_block(&k.block, &of_k, dk, &mut task.parameters);
            q = factors.block;
            task.keys = Some(k.block);
        }
        let dq = gradients.left_rows(&span.queries);
        head.pull_block(&q, &of_q, dq, &mut task.parameters);
    }

    fn add_queries(
        &self,
        _: &mut Task<T>,
        queries: &Range<usize>,
        given: &Cotangent<'_, T>,
        sums: &mut Sums<T>,
    ) {
        let (numbers, rows) = (self.head.numbers(), &given.rows[queries.clone()]);
        let q = self.head.of_queries(queries.clone());
        let levels: Vec<T> = rows.iter().map(|row| row.largest).collect();
        let multiples = q.relative(Shift::Plus(&sums.references), &levels, numbers);
        let (wide, last) = self.cotangents(queries, given);
        let wide = Mat::new(&wide, rows.len(), self.width());
        sums.add(multiples.numbers(), wide, Some(&last), numbers);
    }

    fn pull_keys(
        &self,
        task: &mut Task<T>,
        keys: &Range<usize>,
        sums: &Sums<T>,
        gradients: &mut GradientRows<T>,
    ) {
        let (head, numbers) = (&self.head, self.head.numbers());
        let k = head.of_keys(keys.clone());
        let mut of_k = numbers.filled(k.len(), T::zero());
        let multiples = k.relative(Shift::Minus(&sums.references), &[], numbers);
        let cotangent = self.read_back(sums, head.inputs.v.row_range(keys.clone()), None);
        multiples.pull(&cotangent, &mut of_k);
        let multiples = Mat::new(multiples.numbers(), keys.len(), k.features);
        let target = MatMut::new(gradients.value_rows(keys), keys.len(), self.width());
        matmul_in(
            numbers,
            T::one(),
            multiples,
            sums.matrix(),
            T::one(),
            target,
        );
        head.pull_block(&k, &of_k, gradients.right_rows(keys), &mut task.parameters);
    }
}

/// The first query and the first key of a span.
fn first_of(span: &Span) -> (usize, usize) {
    (span.queries.start, span.keys.start)
}
