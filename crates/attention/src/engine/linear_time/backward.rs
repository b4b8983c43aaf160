//! The backward pass: the forward pass's two steps, with queries and keys exchanged.
//!
//! With $y_j = [v_j | 1]$ and $u_i = [dO_i | -dO_i \cdot O_i] / Z_i$ the gradient of an unnormalised
//! weight is $u_i \cdot y_j$. Queries read the sums S over keys, $d\psi_i = S u_i$; keys read the
//! sums $W = \sum_i \psi_i u_i^T$ over the queries that see them, $d\psi_j = g_j W y_j$ and
//! $dy_j = g_j (W^T \psi_j + e \sum_i u_i)$, of which $dm_j = y_j \cdot dy_j$.

use super::forward::start;
use super::plan::{Part, Span};
use super::squares::FiniteRank;
use super::{Augmented, LinearTime, Sums};
use crate::engine::Level;
use crate::engine::backward::{Cotangent, HeadGradients};
use crate::engine::backward::{GradientRows, Scratch};
use crate::engine::lanes::dot;
use crate::score::Score;
use bochner_numerics::{Real, parallel};
use std::borrow::Cow;
use std::ops::Range;

impl<T: Real, S: Score<T>> LinearTime<'_, T, S> {
    /// Gradients of the head, given what its parts start from.
    pub(crate) fn backward(&self, starts: &[Sums<T>], given: &Cotangent<T>) -> HeadGradients<T> {
        let mut gradients = HeadGradients::zeros(&self.head, 0..self.head.rows.queries);
        let part = |p| self.plan.query_parts().nth(p).expect("one of them");
        let count = self.plan.query_parts().count();
        let mut sums: Vec<Option<Sums<T>>> = (0..count).map(|_| None).collect();
        parallel::for_each_piece(
            (gradients.rows(), &mut sums[..]),
            count,
            |(rows, sums), p, next| {
                let (rows, more_rows) = split_before(rows, part(next));
                let (sums, more_sums) = sums.split_at_mut(next - p);
                ((rows, sums), (more_rows, more_sums))
            },
            |p, (mut rows, sums)| {
                let start = start(starts, p);
                sums[0] = Some(self.pull_queries(part(p), start, given, &mut rows));
            },
        );
        let ends = self.join_backwards(sums.into_iter().flatten().collect());
        let part = |p| self.plan.key_parts().nth(p).expect("one of them");
        parallel::for_each_piece(
            gradients.rows(),
            self.plan.key_parts().count(),
            |rows, _, next| split_before(rows, part(next)),
            |p, mut rows| self.pull_keys(part(p), start(&ends, p), given, &mut rows),
        );
        gradients
    }

    /// Adds the gradients of a part's queries with what its own pairs add to those of its keys; the
    /// sums over its queries, relative to what the first of them read.
    fn pull_queries(
        &self,
        part: &Part,
        start: &Sums<T>,
        given: &Cotangent<T>,
        gradients: &mut GradientRows<T>,
    ) -> Sums<T> {
        let (mut sums, mut own) = (Cow::Borrowed(start), self.zeros());
        let mut squares = self.squares();
        own.reference = part[0].before;
        for (s, span) in part.iter().enumerate() {
            self.pull_span(span, &mut squares, &sums, given, gradients);
            if !own.is_empty() {
                self.add_queries(span.queries.clone(), given, &mut squares, &mut own);
            }
            if s + 1 < part.len() && !span.keys.is_empty() {
                self.step(span, &mut squares, sums.to_mut());
            }
        }
        own
    }

    /// The gradients of a span's queries, and of its keys as far as these queries see them.
    fn pull_span(
        &self,
        span: &Span,
        squares: &mut S::Rank,
        sums: &Sums<T>,
        given: &Cotangent<T>,
        gradients: &mut GradientRows<T>,
    ) {
        let Span { queries, keys, .. } = span;
        if queries.is_empty() {
            return;
        }
        if !keys.is_empty() {
            let pairs = (queries.clone(), keys.clone());
            let mut scratch = Scratch::default();
            self.head
                .backward_block(pairs, given, gradients, &mut scratch);
        }
        if !sums.is_empty() {
            let u = self.cotangents(queries, given, sums.reference);
            let gradient = gradients.left_rows(queries);
            squares
                .of(self.head.left.row_range(queries.clone()))
                .pull_back(&sums.moments, &u, gradient);
        }
    }

    /// $u_i \exp(\text{reference} - r_i)$.
    fn cotangents(
        &self,
        queries: &Range<usize>,
        given: &Cotangent<T>,
        reference: Level,
    ) -> Augmented<T> {
        let numbers = self.numbers();
        let mut u = Augmented {
            wide: numbers.empty(queries.len() * self.head.value_width()),
            last: numbers.empty(queries.len()),
        };
        for i in queries.clone() {
            let (row, cotangent) = (&given.statistics[i], given.cotangent.row(i));
            let factor = if row.normaliser == T::zero() {
                T::zero()
            } else {
                T::of(reference.minus(row.reference).exp()) / row.normaliser
            };
            let delta = dot(given.output.row(i), cotangent);
            u.wide.extend(cotangent.iter().map(|&c| c * factor));
            u.last.push(-delta * factor);
        }
        u
    }

    /// Adds queries to sums over queries.
    fn add_queries(
        &self,
        queries: Range<usize>,
        given: &Cotangent<T>,
        squares: &mut S::Rank,
        sums: &mut Sums<T>,
    ) {
        if !queries.is_empty() {
            let u = self.cotangents(&queries, given, sums.reference);
            let squares = squares.of(self.head.left.row_range(queries));
            sums.add(squares, &u, self.numbers());
        }
    }

    /// From the sums of the parts' queries to what the last keys of each part read.
    fn join_backwards(&self, parts: Vec<Sums<T>>) -> Vec<Sums<T>> {
        let mut sums = self.zeros();
        let mut ends = Vec::with_capacity(parts.len());
        for part in parts.iter().rev() {
            ends.push(sums.clone());
            sums.lower(part.reference);
            sums.join(part);
        }
        if !self.plan.causal {
            return vec![sums];
        }
        ends.reverse();
        ends
    }

    /// Adds the gradients of a part's keys as far as later queries see them.
    fn pull_keys(
        &self,
        part: &Part,
        end: &Sums<T>,
        given: &Cotangent<T>,
        gradients: &mut GradientRows<T>,
    ) {
        let (mut sums, mut squares) = (Cow::Borrowed(end), self.squares());
        for (s, span) in part.iter().enumerate().rev() {
            if !span.keys.is_empty() && !sums.is_empty() {
                self.pull_span_keys(&span.keys, &mut squares, &sums, gradients);
            }
            if s > 0 && !span.queries.is_empty() {
                sums.to_mut().lower(span.before);
                self.add_queries(span.queries.clone(), given, &mut squares, sums.to_mut());
            }
        }
    }

    fn pull_span_keys(
        &self,
        keys: &Range<usize>,
        squares: &mut S::Rank,
        sums: &Sums<T>,
        gradients: &mut GradientRows<T>,
    ) {
        let weighted = self.weighted_values(keys, sums.reference);
        squares.of(self.head.right.row_range(keys.clone()));
        let gradient = gradients.right_rows(keys);
        let numbers = self.numbers();
        let mut dy = squares.read_and_pull_back(&sums.moments, &weighted, gradient, numbers);
        let width = self.head.value_width();
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

/// The rows before those of a part, and the others.
fn split_before<'a, T: Real>(
    rows: GradientRows<'a, T>,
    part: &Part,
) -> (GradientRows<'a, T>, GradientRows<'a, T>) {
    rows.split_at(part[0].queries.start, part[0].keys.start)
}
