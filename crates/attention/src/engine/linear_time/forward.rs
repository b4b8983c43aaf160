//! The forward pass: how keys are summed up and queries read the sums.

use super::squares::FiniteRank;
use super::{Augmented, LinearTime, Sums};
use crate::engine::output::normalise;
use crate::engine::product::add_product;
use crate::engine::scan::{Span, Summed};
use crate::engine::{Level, OutputRows, RowStatistics, multiply_finite};
use crate::score::Score;
use bochner_numerics::operations::record;
use bochner_numerics::{Buffer, Mat, Operations, Real};
use std::ops::Range;

/// What the parts of every head start from, in O(R² dv) memory each; if not causal, one for all.
pub(crate) type Starts<T> = Buffer<Buffer<Sums<T>>>;

impl<T: Real, S: Score<T>> LinearTime<'_, T, S> {
    /// Adds keys, weighted relative to the reference that the sums have.
    pub(super) fn add_keys(&self, keys: Range<usize>, squares: &mut S::Rank, sums: &mut Sums<T>) {
        let weighted = self.weighted_values(&keys, sums.reference);
        let squares = squares.of(self.head.right.row_range(keys));
        sums.add(squares, &weighted, self.numbers());
    }

    /// $g_j [v_j | 1]$.
    pub(super) fn weighted_values(&self, keys: &Range<usize>, reference: Level) -> Augmented<T> {
        let g = self.relative(keys.clone(), reference);
        let width = self.head.value_width();
        record(Operations::multiply_adds(keys.len() * width));
        let mut wide = self.numbers().empty(keys.len() * width);
        for (j, &g) in keys.clone().zip(g.iter()) {
            wide.extend(self.head.values.row(j).iter().map(|&v| g * v));
        }
        Augmented { wide, last: g }
    }

    /// Outputs and statistics of a span's queries.
    pub(super) fn read_span(
        &self,
        span: &Span,
        squares: &mut S::Rank,
        sums: &Sums<T>,
        out: OutputRows<T>,
    ) {
        let OutputRows { output, statistics } = out;
        let (width, queries) = (self.head.value_width(), span.queries.clone());
        let references = &self.plan.rows[queries.clone()];
        for (row, &reference) in statistics.iter_mut().zip(references) {
            *row = RowStatistics::new(reference);
        }
        let output = output.zeros();
        self.meet(span, output, statistics);
        if !sums.is_empty() && !queries.is_empty() {
            let rows = queries.len();
            record(
                Operations::multiply_adds(2 * rows * (width + 1)) + Operations::exponentials(rows),
            );
            let squares = squares.of(self.head.left.row_range(queries));
            let read = squares.read(&sums.moments, self.numbers());
            let rows = output.chunks_exact_mut(width).zip(statistics.iter_mut());
            let read = read.wide.chunks_exact(width).zip(read.last.iter());
            for ((out, row), read) in rows.zip(read) {
                let factor = T::of(sums.reference.minus(row.reference).exp());
                add_row(out, row, factor, read, &sums.totals, self.floor);
            }
        }
        normalise(output, width, statistics);
        multiply_finite(output, self.head.unit);
    }

    /// Adds what a span's queries make of its own keys, pair by pair.
    fn meet(&self, span: &Span, output: &mut [T], statistics: &mut [RowStatistics<T>]) {
        let Span { queries, keys, .. } = span;
        if !queries.is_empty() && !keys.is_empty() {
            let weights = self.head.unnormalised(queries.clone(), keys, statistics);
            add_product(
                self.numbers(),
                Mat::new(&weights, queries.len(), keys.len()),
                self.head.values.row_range(keys.clone()),
                self.head.finite.values,
                output,
            );
        }
    }
}

/// Adds what a row reads to what it has, with the floor's part, below which no normaliser lies.
#[inline(always)]
fn add_row<T: Real>(
    output: &mut [T],
    row: &mut RowStatistics<T>,
    factor: T,
    (read, &kernel): (&[T], &T),
    totals: &Augmented<T>,
    floor: T,
) {
    for (out, (&read, &total)) in output.iter_mut().zip(read.iter().zip(totals.wide.iter())) {
        *out += factor * (read + floor * total);
    }
    row.normaliser += factor * (kernel.max(T::zero()) + floor * totals.last[0]);
}
