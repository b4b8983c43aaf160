//! The forward pass: keys are summed up, queries read the sums.

use super::features::SymmetricFeatures;
use super::plan::{Part, Plan, Span};
use super::{Augmented, LinearTime, Sums, by_parts};
use crate::engine::product::add_product;
use crate::engine::{Level, RowStatistics};
use bochner_numerics::operations::record;
use bochner_numerics::{Mat, Operations, Real};
use std::borrow::Cow;
use std::ops::Range;

/// What a head computes.
pub(crate) struct Passed<T> {
    /// `[Tq, dv]`.
    pub(crate) output: Vec<T>,
    pub(crate) statistics: Vec<RowStatistics<T>>,
    /// What its parts start from, in O(R² dv) memory; if not causal, one for all.
    pub(crate) starts: Vec<Sums<T>>,
}

/// Attention of all heads.
pub(crate) fn forward<T: Real>(heads: &[LinearTime<T>]) -> Vec<Passed<T>> {
    let starts = starts(heads);
    let rows = by_parts(
        heads,
        |plan| plan.query_parts().collect(),
        |h, p, part| heads[h].read_part(part, start(&starts[h], p)),
    );
    let passed = heads.iter().zip(starts).zip(rows);
    passed
        .map(|((head, starts), parts)| head.passed(starts, parts))
        .collect()
}

/// What the parts of every head start from.
pub(super) fn starts<T: Real>(heads: &[LinearTime<T>]) -> Vec<Vec<Sums<T>>> {
    let sums = by_parts(heads, summed_parts, |h, _, part| heads[h].sum_part(part));
    let starts = heads.iter().zip(sums);
    starts.map(|(head, sums)| head.join(sums)).collect()
}

/// Part `p`'s start: its own, or that of all.
pub(super) fn start<T>(starts: &[Sums<T>], p: usize) -> &Sums<T> {
    starts.get(p).unwrap_or(&starts[0])
}

/// The parts whose sums somebody reads: if causal, all but the last.
fn summed_parts(plan: &Plan) -> Vec<&Part> {
    let parts = plan.key_parts();
    let count = parts.len() - usize::from(plan.causal).min(parts.len());
    parts.take(count).collect()
}

/// Adds the last positions of a causal sequence to the sums over those before; with an output,
/// attends from them to all so far.
pub(crate) fn follow<T: Real>(
    mut head: LinearTime<T>,
    sums: &mut Sums<T>,
    mut output: Option<&mut [T]>,
) {
    head.plan.after(sums.reference);
    let (mut psi, width) = (head.features(), head.head.value_width());
    for span in head.plan.query_parts().flatten() {
        if let Some(output) = &mut output {
            let (rows, _) = head.read(span, &mut psi, sums);
            let place = span.queries.start * width..span.queries.end * width;
            output[place].copy_from_slice(&rows);
        }
        head.step(span, &mut psi, sums);
    }
}

type Rows<T> = (Vec<T>, Vec<RowStatistics<T>>);

impl<T: Real> LinearTime<'_, T> {
    /// The sums of a part's keys.
    fn sum_part(&self, part: &Part) -> Sums<T> {
        let (mut sums, mut psi) = (self.zeros(), self.features());
        sums.reference = part.last().map_or(Level::NONE, |span| span.after);
        for span in part {
            self.add_keys(span.keys.clone(), &mut psi, &mut sums);
        }
        sums
    }

    /// From the sums of the parts to what each starts from.
    fn join(&self, parts: Vec<Sums<T>>) -> Vec<Sums<T>> {
        let mut sums = self.zeros();
        if !self.plan.causal {
            for part in parts {
                sums.raise(part.reference);
                sums.join(&part);
            }
            return vec![sums];
        }
        let mut starts = vec![sums.clone()];
        for part in parts {
            sums.raise(part.reference);
            sums.join(&part);
            starts.push(sums.clone());
        }
        starts
    }

    /// Adds keys, weighted relative to the reference that the sums have.
    pub(super) fn add_keys(
        &self,
        keys: Range<usize>,
        psi: &mut SymmetricFeatures<T>,
        sums: &mut Sums<T>,
    ) {
        if !keys.is_empty() {
            let weighted = self.weighted_values(&keys, sums.reference);
            sums.add(psi.of(self.head.right.row_range(keys)), &weighted);
        }
    }

    /// $g_j [v_j | 1]$.
    pub(super) fn weighted_values(&self, keys: &Range<usize>, reference: Level) -> Augmented<T> {
        let g: Vec<T> = self.exponents.relative(0, keys.clone(), reference);
        let width = self.head.value_width();
        record(Operations::multiply_adds(keys.len() * width));
        let mut wide = Vec::with_capacity(keys.len() * width);
        for (j, &g) in keys.clone().zip(&g) {
            wide.extend(self.head.values.row(j).iter().map(|&v| g * v));
        }
        Augmented { wide, last: g }
    }

    /// Outputs and statistics of a part's queries.
    fn read_part(&self, part: &Part, start: &Sums<T>) -> Rows<T> {
        let mut sums = Cow::Borrowed(start);
        let mut psi = self.features();
        let (mut output, mut statistics) = (Vec::new(), Vec::new());
        for (s, span) in part.iter().enumerate() {
            let (rows, more) = self.read(span, &mut psi, &sums);
            output.extend(rows);
            statistics.extend(more);
            if s + 1 < part.len() && !span.keys.is_empty() {
                self.step(span, &mut psi, sums.to_mut());
            }
        }
        (output, statistics)
    }

    /// From what the queries of a span read to what those of the next do.
    pub(super) fn step(&self, span: &Span, psi: &mut SymmetricFeatures<T>, sums: &mut Sums<T>) {
        sums.raise(span.after);
        self.add_keys(span.keys.clone(), psi, sums);
    }

    /// Outputs and statistics of a span's queries.
    fn read(&self, span: &Span, psi: &mut SymmetricFeatures<T>, sums: &Sums<T>) -> Rows<T> {
        let width = self.head.value_width();
        let queries = span.queries.clone();
        let rows = queries
            .clone()
            .map(|i| RowStatistics::new(self.plan.rows[i]));
        let mut statistics: Vec<RowStatistics<T>> = rows.collect();
        let mut output = self.meet(span, &mut statistics);
        record(Operations::multiply_adds(output.len()));
        if !sums.is_empty() && !queries.is_empty() {
            let rows = queries.len();
            record(
                Operations::multiply_adds(2 * rows * (width + 1)) + Operations::exponentials(rows),
            );
            let read = psi.of(self.head.left.row_range(queries));
            let read = read.read(&sums.moments);
            let rows = output.chunks_exact_mut(width).zip(&mut statistics);
            let read = read.wide.chunks_exact(width).zip(&read.last);
            for ((out, row), read) in rows.zip(read) {
                let factor = T::of(sums.reference.minus(row.reference).exp());
                add_row(out, row, factor, read, &sums.totals, self.floor);
            }
        }
        for (out, row) in output.chunks_exact_mut(width).zip(&statistics) {
            if row.normaliser > T::zero() {
                out.iter_mut().for_each(|x| *x /= row.normaliser);
            }
        }
        (output, statistics)
    }

    /// What a span's queries make of its own keys, pair by pair.
    fn meet(&self, span: &Span, statistics: &mut [RowStatistics<T>]) -> Vec<T> {
        let Span { queries, keys, .. } = span;
        let mut output = vec![T::zero(); queries.len() * self.head.value_width()];
        if !queries.is_empty() && !keys.is_empty() {
            let weights = self.head.unnormalised(queries.clone(), keys, statistics);
            add_product(
                Mat::new(&weights, queries.len(), keys.len()),
                self.head.values.row_range(keys.clone()),
                self.head.finite.values,
                &mut output,
            );
        }
        output
    }

    /// A head's results from those of its parts. Queries before the first part see nothing.
    fn passed(&self, starts: Vec<Sums<T>>, parts: Vec<Rows<T>>) -> Passed<T> {
        let seeing: usize = parts.iter().map(|(_, rows)| rows.len()).sum();
        let blind = self.head.rows.queries - seeing;
        let mut output = vec![T::zero(); blind * self.head.value_width()];
        let mut statistics = vec![RowStatistics::new(Level::NONE); blind];
        for (rows, more) in parts {
            output.extend(rows);
            statistics.extend(more);
        }
        Passed {
            output,
            statistics,
            starts,
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
    for (out, (&read, &total)) in output.iter_mut().zip(read.iter().zip(&totals.wide)) {
        *out += factor * (read + floor * total);
    }
    row.normaliser += factor * (kernel.max(T::zero()) + floor * totals.last[0]);
}
