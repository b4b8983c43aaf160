//! The forward pass: keys are summed up, and queries read the sums.

use super::LinearTime;
use super::order::Squares;
use super::sums::{Augmented, Sums};
use crate::linear::{RunningSums as _, Span};
use crate::normaliser::Row;
use crate::pairwise::OutputRows;
use bochner_numerics::operations::record;
use bochner_numerics::{Mat, MatMut, Operations, Real, elementary, matmul_in};
use std::ops::Range;

impl<T: Real> LinearTime<'_, T> {
    /// Adds keys, weighted relative to the reference that the sums have.
    pub(super) fn add_keys(
        &self,
        keys: Range<usize>,
        squares: &mut Squares<T>,
        sums: &mut Sums<T>,
    ) {
        let weighted = self.weighted_values(&keys, sums.reference);
        let squares = squares.of(self.head.right.row_range(keys));
        sums.add(squares, &weighted, self.numbers());
    }

    /// $g_j [v_j | 1]$.
    pub(super) fn weighted_values(&self, keys: &Range<usize>, reference: f64) -> Augmented<T> {
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

    /// Writes outputs and states of a span's queries.
    pub(super) fn read_span(
        &self,
        span: &Span,
        squares: &mut Squares<T>,
        sums: &Sums<T>,
        out: OutputRows<T>,
    ) {
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
