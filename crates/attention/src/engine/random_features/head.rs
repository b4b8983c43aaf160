//! One head in linear time.

use super::block::{Block, Features, Pulled, Shift};
use super::pairs::{Factors, Given, Pairs, Row, Values};
use super::referenced_sums::Sums;
use crate::engine::Rows;
use crate::engine::backward::GradientRows;
use crate::engine::scan::{Course, ResultRows, Scanned, Span, Summed};
use bochner_numerics::operations::record;
use bochner_numerics::{Buffer, Mat, MatMut, Operations, Real, matmul_in};
use std::ops::Range;

/// One head.
pub(super) struct Head<'a, T: Real> {
    pub(super) features: Features<'a, T>,
    pub(super) queries: Mat<'a, T>,
    /// Keys and values that are not padding.
    pub(super) keys: Mat<'a, T>,
    pub(super) values: Mat<'a, T>,
    pub(super) rows: Rows<'a>,
    pub(super) course: Course,
    /// Whether gradients along the frequencies are wanted.
    pub(super) trained: bool,
}

/// What a task keeps from span to span.
pub(super) struct Task<T> {
    /// The keys of the present span, if its queries have met them.
    keys: Option<Block<T>>,
    /// The gradients along the frequencies, if they are wanted.
    pub(super) along: Vec<T>,
}

/// Output rows, zeros so far, and what becomes known of them.
pub(super) struct Out<'o, T> {
    pub(super) output: &'o mut [T],
    pub(super) rows: &'o mut [Row<T>],
}

impl<T: Real> ResultRows for Out<'_, T> {
    fn split_at(self, rows: usize) -> (Self, Self) {
        let width = self.output.len() / self.rows.len().max(1);
        let (output, more_output) = self.output.split_at_mut(rows * width);
        let (rows, more_rows) = self.rows.split_at_mut(rows);
        let others = Self {
            output: more_output,
            rows: more_rows,
        };
        (Self { output, rows }, others)
    }

    fn clear(self) {
        self.rows.fill(Row::blind());
    }
}

impl<'a, T: Real> Head<'a, T> {
    fn width(&self) -> usize {
        self.values.shape().1
    }

    fn factors(&self, x: Mat<T>, rows: &Range<usize>) -> Factors<T> {
        let block = self.features.of(x.row_range(rows.clone()));
        Factors::new(block, &self.features)
    }

    fn pairs(&self, span: &Span) -> Pairs<'a, T> {
        Pairs {
            features: self.features,
            rows: self.rows,
            dropout: None,
            first: (span.queries.start, span.keys.start),
        }
    }

    fn along_frequencies(&self) -> Vec<T> {
        let frequencies = self.features.frequencies;
        let count = frequencies.count() * frequencies.width();
        vec![T::zero(); if self.trained { count } else { 0 }]
    }

    /// $[dO_i | -dO_i \cdot O_i] / Z_i$ of some queries.
    fn cotangents(&self, queries: &Range<usize>, given: &Given<T>) -> (Buffer<T>, Buffer<T>) {
        let numbers = self.features.numbers;
        let mut wide = numbers.empty(queries.len() * self.width());
        let mut last = numbers.empty(queries.len());
        for i in queries.clone() {
            let inverse = given.rows[i].inverse();
            wide.extend(given.cotangent.row(i).iter().map(|&g| g * inverse));
            last.push(-given.deltas[i] * inverse);
        }
        (wide, last)
    }

    /// The cotangents of multiples of features, $S y_i$, given rows $y = [r | s]$.
    fn read_back(&self, sums: &Sums<T>, wide: Mat<T>, last: Option<&[T]>) -> Buffer<T> {
        let (numbers, rows, features) = (self.features.numbers, wide.shape().0, sums.last.len());
        let mut cotangent = numbers.any(rows * features);
        sums.multiply_last(last, &mut cotangent);
        let target = MatMut::new(&mut cotangent, rows, features);
        matmul_in(numbers, T::one(), wide, sums.matrix().t(), T::one(), target);
        cotangent
    }
}

impl<T: Real> Scanned<T> for Head<'_, T> {
    type Sums = Sums<T>;
    type Out<'o> = Out<'o, T>;
    type Given<'g> = Given<'g, T>;
    type Task = Task<T>;

    fn course(&self) -> &Course {
        &self.course
    }

    fn task(&self) -> Task<T> {
        Task {
            keys: None,
            along: self.along_frequencies(),
        }
    }

    fn zeros(&self) -> Sums<T> {
        Sums::zeros(self.features.count(), self.width(), self.features.numbers)
    }

    fn add(&self, task: &mut Task<T>, span: &Span, sums: &mut Sums<T>) {
        let met = task.keys.take();
        let block = met.unwrap_or_else(|| self.features.of(self.keys.row_range(span.keys.clone())));
        let values = self.values.row_range(span.keys.clone());
        sums.add_keys(&block, values, &self.features);
    }

    fn read(&self, task: &mut Task<T>, span: &Span, sums: &Sums<T>, out: Out<'_, T>) {
        let Out { output, rows } = out;
        rows.fill(Row::blind());
        debug_assert!(task.keys.is_none(), "of another span");
        if rows.is_empty() {
            return;
        }
        let numbers = self.features.numbers;
        let q = (self.features).of(self.queries.row_range(span.queries.clone()));
        if !sums.is_empty() {
            let levels = q.tops(Shift::Plus(&sums.references), numbers);
            let multiples = q.relative(Shift::Plus(&sums.references), &levels, numbers);
            let features = self.features.count();
            record(Operations::multiply_adds(multiples.len()));
            sums.normalise(&multiples, &levels, rows);
            let multiples = Mat::new(&multiples, rows.len(), features);
            let target = MatMut::new(output, rows.len(), self.width());
            let (one, zero) = (T::one(), T::zero());
            matmul_in(numbers, one, multiples, sums.matrix(), zero, target);
        }
        if !span.keys.is_empty() {
            let k = self.factors(self.keys, &span.keys);
            let values = Values::new(self.values.row_range(span.keys.clone()));
            let q = Factors::new(q, &self.features);
            self.pairs(span).meet((&q, &k), values, rows, output);
            task.keys = Some(k.block);
        }
        for (out, row) in output.chunks_exact_mut(self.width()).zip(rows) {
            row.normalise(out);
        }
    }

    fn pull_queries(
        &self,
        task: &mut Task<T>,
        span: &Span,
        (sums, own): (&Sums<T>, &mut Sums<T>),
        given: &Given<'_, T>,
        gradients: &mut GradientRows<T>,
    ) {
        let rows = &given.rows[span.queries.clone()];
        debug_assert!(task.keys.is_none(), "of another span");
        if rows.is_empty() {
            return;
        }
        let (numbers, features) = (self.features.numbers, &self.features);
        let mut q = features.of(self.queries.row_range(span.queries.clone()));
        let mut along_q = features.pulled(rows.len());
        if !sums.is_empty() {
            let levels: Vec<T> = rows.iter().map(|row| row.reference).collect();
            let (wide, last) = self.cotangents(&span.queries, given);
            let wide = Mat::new(&wide, rows.len(), self.width());
            let multiples = q.relative(Shift::Plus(&sums.references), &levels, numbers);
            let cotangent = self.read_back(sums, wide, Some(&last));
            features.pull_back(&q, &multiples, &cotangent, &mut along_q);
            if !own.is_empty() {
                let multiples = match own.references == sums.references {
                    true => multiples,
                    false => q.relative(Shift::Plus(&own.references), &levels, numbers),
                };
                own.add(&multiples, wide, Some(&last), numbers);
            }
        }
        if !span.keys.is_empty() {
            let mut k = self.factors(self.keys, &span.keys);
            let values = Values::new(self.values.row_range(span.keys.clone()));
            let mut along_k = features.pulled(span.keys.len());
            let factors = Factors::new(q, features);
            let of_span = Given {
                rows,
                cotangent: given.cotangent.row_range(span.queries.clone()),
                deltas: &given.deltas[span.queries.clone()],
            };
            let (both, dv) = (
                (&mut along_q, &mut along_k),
                gradients.value_rows(&span.keys),
            );
            self.pairs(span)
                .pull_back((&factors, &k), values, of_span, both, dv);
            let dk = gradients.right_rows(&span.keys);
            features.finish(&mut k.block, &mut along_k, dk, &mut task.along);
            q = factors.block;
            task.keys = Some(k.block);
        }
        let dq = gradients.left_rows(&span.queries);
        features.finish(&mut q, &mut along_q, dq, &mut task.along);
    }

    fn add_queries(
        &self,
        _: &mut Task<T>,
        queries: &Range<usize>,
        given: &Given<'_, T>,
        sums: &mut Sums<T>,
    ) {
        let (numbers, rows) = (self.features.numbers, &given.rows[queries.clone()]);
        let q = self.features.of(self.queries.row_range(queries.clone()));
        let levels: Vec<T> = rows.iter().map(|row| row.reference).collect();
        let multiples = q.relative(Shift::Plus(&sums.references), &levels, numbers);
        let (wide, last) = self.cotangents(queries, given);
        let wide = Mat::new(&wide, rows.len(), self.width());
        sums.add(&multiples, wide, Some(&last), numbers);
    }

    fn pull_keys(
        &self,
        task: &mut Task<T>,
        keys: &Range<usize>,
        sums: &Sums<T>,
        gradients: &mut GradientRows<T>,
    ) {
        let (numbers, features) = (self.features.numbers, &self.features);
        let mut k = features.of(self.keys.row_range(keys.clone()));
        let mut along_k: Pulled<T> = features.pulled(keys.len());
        let values = self.values.row_range(keys.clone());
        let multiples = k.relative(Shift::Minus(&sums.references), &[], numbers);
        let cotangent = self.read_back(sums, values, None);
        features.pull_back(&k, &multiples, &cotangent, &mut along_k);
        let multiples = Mat::new(&multiples, keys.len(), features.count());
        let target = MatMut::new(gradients.value_rows(keys), keys.len(), self.width());
        matmul_in(
            numbers,
            T::one(),
            multiples,
            sums.matrix(),
            T::one(),
            target,
        );
        let dk = gradients.right_rows(keys);
        features.finish(&mut k, &mut along_k, dk, &mut task.along);
    }
}
