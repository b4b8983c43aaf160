//! One head in linear time.

use super::block::{Block, Features, Shift};
use super::pairs::{Factors, Given, Pairs, Row};
use super::sums::Sums;
use crate::call::Inputs;
use crate::linear::{Course, PrefixSums, ResultRows, RunningSums, Span};
use crate::mask::HeadMask;
use crate::pairwise::GradientRows;
use bochner_numerics::operations::record;
use bochner_numerics::{Buffer, Mat, MatMut, Operations, Real, matmul_in};
use std::ops::Range;

/// One head.
pub(super) struct Head<'a, T: Real> {
    pub(super) features: Features<'a, T>,
    pub(super) inputs: Inputs<'a, T>,
    pub(super) rows: HeadMask<'a>,
    pub(super) course: Course,
}

/// State that a task carries from one span of the sequence to the next.
pub(super) struct Task<T> {
    /// The keys of the present span, if its queries have met them.
    keys: Option<Block<T>>,
    /// The gradients along the parameters.
    pub(super) parameters: Buffer<T>,
}

/// Output rows, zeros so far, and their states.
pub(super) struct Out<'o, T> {
    pub(super) output: &'o mut [T],
    pub(super) rows: &'o mut [Row<T>],
}

impl<T: Real> ResultRows for Out<'_, T> {
    fn split_at(self, rows: usize) -> (Self, Self) {
        let width = self.output.len() / self.rows.len().max(1);
        let (output, more_output) = self.output.split_at_mut(rows * width);
        let (rows, more_rows) = self.rows.split_at_mut(rows);
        (
            Self { output, rows },
            Self {
                output: more_output,
                rows: more_rows,
            },
        )
    }

    fn clear(self) {
        self.rows.fill(Row::blind());
    }
}

impl<'a, T: Real> Head<'a, T> {
    fn width(&self) -> usize {
        self.inputs.v.shape().1
    }

    fn pairs(&self, span: &Span) -> Pairs<'a, T> {
        let first = (span.queries.start, span.keys.start);
        Pairs {
            features: self.features,
            rows: self.rows,
            dropout: None,
            first,
        }
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

impl<T: Real> PrefixSums<T> for Head<'_, T> {
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
            parameters: (self.features.numbers).filled(self.features.map.parameters(), T::zero()),
        }
    }

    fn zeros(&self) -> Sums<T> {
        Sums::zeros(self.features.count(), self.width(), self.features.numbers)
    }

    fn add(&self, task: &mut Task<T>, span: &Span, sums: &mut Sums<T>) {
        let met = task.keys.take();
        let block = met.unwrap_or_else(|| {
            self.features
                .of_keys(self.inputs.k.row_range(span.keys.clone()))
        });
        sums.add_keys(
            &block,
            self.inputs.v.row_range(span.keys.clone()),
            &self.features,
        );
    }

    fn read(&self, task: &mut Task<T>, span: &Span, sums: &Sums<T>, out: Out<'_, T>) {
        let Out { output, rows } = out;
        rows.fill(Row::blind());
        if rows.is_empty() {
            return;
        }
        let numbers = self.features.numbers;
        let q = self
            .features
            .of_queries(self.inputs.q.row_range(span.queries.clone()));
        if !sums.is_empty() {
            let levels = q.tops(Shift::Plus(&sums.references), numbers);
            let multiples = q.relative(Shift::Plus(&sums.references), &levels, numbers);
            record(Operations::multiply_adds(q.len()));
            sums.normalise(multiples.numbers(), &levels, rows);
            let multiples = Mat::new(multiples.numbers(), rows.len(), self.features.count());
            let target = MatMut::new(output, rows.len(), self.width());
            matmul_in(
                numbers,
                T::one(),
                multiples,
                sums.matrix(),
                T::zero(),
                target,
            );
        }
        if !span.keys.is_empty() {
            let k = self
                .features
                .of_keys(self.inputs.k.row_range(span.keys.clone()));
            let (q, k) = (
                Factors::new(q, &self.features),
                Factors::new(k, &self.features),
            );
            let values = self.inputs.v.row_range(span.keys.clone());
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
        if rows.is_empty() {
            return;
        }
        let (numbers, features) = (self.features.numbers, &self.features);
        let mut q = features.of_queries(self.inputs.q.row_range(span.queries.clone()));
        let mut of_q = numbers.filled(q.len(), T::zero());
        if !sums.is_empty() {
            let levels: Vec<T> = rows.iter().map(|row| row.reference).collect();
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
            let k = features.of_keys(self.inputs.k.row_range(span.keys.clone()));
            let mut of_k = numbers.filled(k.len(), T::zero());
            let (factors, k) = (Factors::new(q, features), Factors::new(k, features));
            let values = self.inputs.v.row_range(span.keys.clone());
            let dv = gradients.value_rows(&span.keys);
            let of_span = given.rows(&span.queries);
            self.pairs(span)
                .pull((&factors, &k), values, of_span, (&mut of_q, &mut of_k), dv);
            let dk = gradients.right_rows(&span.keys);
            features.pull(&k.block, &of_k, dk, &mut task.parameters);
            q = factors.block;
            task.keys = Some(k.block);
        }
        let dq = gradients.left_rows(&span.queries);
        features.pull(&q, &of_q, dq, &mut task.parameters);
    }

    fn add_queries(
        &self,
        _: &mut Task<T>,
        queries: &Range<usize>,
        given: &Given<'_, T>,
        sums: &mut Sums<T>,
    ) {
        let (numbers, rows) = (self.features.numbers, &given.rows[queries.clone()]);
        let q = self
            .features
            .of_queries(self.inputs.q.row_range(queries.clone()));
        let levels: Vec<T> = rows.iter().map(|row| row.reference).collect();
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
        let (numbers, features) = (self.features.numbers, &self.features);
        let k = features.of_keys(self.inputs.k.row_range(keys.clone()));
        let mut of_k = numbers.filled(k.len(), T::zero());
        let multiples = k.relative(Shift::Minus(&sums.references), &[], numbers);
        let cotangent = self.read_back(sums, self.inputs.v.row_range(keys.clone()), None);
        multiples.pull(&cotangent, &mut of_k);
        let multiples = Mat::new(multiples.numbers(), keys.len(), features.count());
        let target = MatMut::new(gradients.value_rows(keys), keys.len(), self.width());
        matmul_in(
            numbers,
            T::one(),
            multiples,
            sums.matrix(),
            T::one(),
            target,
        );
        features.pull(&k, &of_k, gradients.right_rows(keys), &mut task.parameters);
    }
}
