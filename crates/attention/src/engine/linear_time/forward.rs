//! The forward pass: keys are summed up, queries read the sums.

use super::plan::{Part, Span};
use super::squares::FiniteRank;
use super::{Augmented, LinearTime, Sums};
use crate::engine::output::normalise;
use crate::engine::product::add_product;
use crate::engine::{Level, OutputRows, RowStatistics, multiply_finite};
use crate::score::Score;
use bochner_numerics::operations::record;
use bochner_numerics::{Buffer, Mat, Operations, Real, parallel};
use std::borrow::Cow;
use std::ops::Range;

/// What the parts of every head start from, in O(R² dv) memory each; if not causal, one for all.
pub(crate) type Starts<T> = Buffer<Buffer<Sums<T>>>;

/// Part `p`'s start: its own, or that of all.
pub(super) fn start<T>(starts: &[Sums<T>], p: usize) -> &Sums<T> {
    debug_assert!(starts.len() == 1 || p < starts.len(), "another plan");
    starts.get(p).unwrap_or(&starts[0])
}

/// Adds the last positions of a causal sequence to the sums over those before; with an output,
/// attends from them to all so far. The plan is one after these sums.
pub(crate) fn follow<T: Real, S: Score<T>>(
    head: LinearTime<T, S>,
    sums: &mut Sums<T>,
    mut out: Option<OutputRows<T>>,
) {
    let mut squares = head.squares();
    for span in head.plan.query_parts().flatten() {
        if let Some(rows) = out {
            let (own, others) = rows.split_at(span.queries.len());
            head.read(span, &mut squares, sums, own);
            out = Some(others);
        }
        head.step(span, &mut squares, sums);
    }
}

impl<T: Real, S: Score<T>> LinearTime<'_, T, S> {
    /// What the parts start from.
    pub(crate) fn starts(&self) -> Buffer<Sums<T>> {
        // Nobody reads the sums of a causal sequence's last part.
        let parts = self.plan.key_parts().count();
        let count = parts - usize::from(self.plan.causal).min(parts);
        let mut sums = self.head.workspace.pool().empty(count + 1);
        let sum = |p| self.sum_part(self.plan.key_parts().nth(p).expect("one of them"));
        parallel::map_into(count, sum, &mut sums);
        self.join(&mut sums);
        sums
    }

    /// Outputs of all queries and their statistics. Queries before the first part see nothing.
    pub(crate) fn read_all(&self, starts: &[Sums<T>], out: OutputRows<T>) {
        let part = |p| self.plan.query_parts().nth(p).expect("one of them");
        let first = |p| part(p)[0].queries.start;
        let (blind, rows) = out.split_at(first(0));
        blind.output.zeros();
        blind.statistics.fill(RowStatistics::new(Level::NONE));
        parallel::for_each_piece(
            rows,
            self.plan.query_parts().count(),
            |rows, p, next| rows.split_at(first(next) - first(p)),
            |p, rows| self.read_part(part(p), start(starts, p), rows),
        );
    }

    /// The sums of a part's keys.
    fn sum_part(&self, part: &Part) -> Sums<T> {
        let (mut sums, mut squares) = (self.zeros(), self.squares());
        sums.reference = part.last().map_or(Level::NONE, |span| span.after);
        for span in part {
            self.add_keys(span.keys.clone(), &mut squares, &mut sums);
        }
        sums
    }

    /// From the sums of the parts to what each starts from.
    fn join(&self, parts: &mut Vec<Sums<T>>) {
        let mut sums = self.zeros();
        for part in parts.iter_mut() {
            let before = self.plan.causal.then(|| sums.clone());
            sums.raise(part.reference);
            sums.join(part);
            if let Some(before) = before {
                *part = before;
            }
        }
        if !self.plan.causal {
            parts.clear();
        }
        parts.push(sums);
    }

    /// Adds keys, weighted relative to the reference that the sums have.
    pub(super) fn add_keys(&self, keys: Range<usize>, squares: &mut S::Rank, sums: &mut Sums<T>) {
        if !keys.is_empty() {
            let weighted = self.weighted_values(&keys, sums.reference);
            sums.add(
                squares.of(self.head.right.row_range(keys)),
                &weighted,
                self.numbers(),
            );
        }
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

    /// Outputs and statistics of a part's queries.
    fn read_part(&self, part: &Part, start: &Sums<T>, mut out: OutputRows<T>) {
        let (mut sums, mut squares) = (Cow::Borrowed(start), self.squares());
        for (s, span) in part.iter().enumerate() {
            let (own, others) = out.split_at(span.queries.len());
            self.read(span, &mut squares, &sums, own);
            out = others;
            if s + 1 < part.len() && !span.keys.is_empty() {
                self.step(span, &mut squares, sums.to_mut());
            }
        }
    }

    /// From what the queries of a span read to what those of the next do.
    pub(super) fn step(&self, span: &Span, squares: &mut S::Rank, sums: &mut Sums<T>) {
        sums.raise(span.after);
        self.add_keys(span.keys.clone(), squares, sums);
    }

    /// Outputs and statistics of a span's queries.
    fn read(&self, span: &Span, squares: &mut S::Rank, sums: &Sums<T>, out: OutputRows<T>) {
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
