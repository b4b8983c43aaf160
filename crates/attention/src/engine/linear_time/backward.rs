//! The backward pass: the forward pass's two steps, with queries and keys exchanged.
//!
//! With $y_j = [v_j | 1]$ and $u_i = [dO_i | -dO_i \cdot O_i] / Z_i$ the gradient of an unnormalised
//! weight is $u_i \cdot y_j$. Queries read the sums S over keys, $d\psi_i = S u_i$; keys read the
//! sums $W = \sum_i \psi_i u_i^T$ over the queries that see them, $d\psi_j = g_j W y_j$ and
//! $dy_j = g_j (W^T \psi_j + e \sum_i u_i)$, of which $dm_j = y_j \cdot dy_j$.

use super::forward::start;
use super::plan::{Part, Span};
use super::squares::Squares;
use super::{Augmented, LinearTime, Sums, by_parts};
use crate::engine::backward::Scratch;
use crate::engine::sweep::dot;
use crate::engine::{Cotangent, HeadGradients, Level};
use bochner_numerics::{Buffer, Real};
use std::borrow::Cow;
use std::ops::Range;

/// Gradients of all heads, given what their parts start from.
pub(crate) fn backward<T: Real>(
    heads: &[LinearTime<T>],
    starts: &[Buffer<Sums<T>>],
    given: &[Cotangent<T>],
) -> Vec<HeadGradients<T>> {
    let queries = by_parts(
        heads,
        |plan| plan.query_parts().collect(),
        |h, p, part| heads[h].pull_queries(part, start(&starts[h], p), &given[h]),
    );
    let (queries, sums): (Vec<_>, Vec<_>) = queries.into_iter().map(unzip).unzip();
    let ends: Vec<Vec<Sums<T>>> = (heads.iter().zip(sums))
        .map(|(head, sums)| head.join_backwards(sums))
        .collect();
    let keys = by_parts(
        heads,
        |plan| plan.key_parts().collect(),
        |h, p, part| heads[h].pull_keys(part, start(&ends[h], p), &given[h]),
    );
    let parts = heads.iter().zip(queries).zip(keys);
    parts
        .map(|((head, queries), keys)| head.gathered(queries, keys))
        .collect()
}

fn unzip<A, B>(pairs: Vec<(A, B)>) -> (Vec<A>, Vec<B>) {
    pairs.into_iter().unzip()
}

impl<T: Real> LinearTime<'_, T> {
    /// The gradients of a part's queries with what its own pairs add to those of its keys, and the
    /// sums over its queries, relative to what its first queries read.
    fn pull_queries(
        &self,
        part: &Part,
        start: &Sums<T>,
        given: &Cotangent<T>,
    ) -> (HeadGradients<T>, Sums<T>) {
        let mut gradients = self.zero_gradients(part);
        let (mut sums, mut own) = (Cow::Borrowed(start), self.zeros());
        let mut squares = self.squares();
        own.reference = part[0].before;
        for (s, span) in part.iter().enumerate() {
            self.pull_span(span, &mut squares, &sums, given, &mut gradients);
            if !own.is_empty() {
                self.add_queries(span.queries.clone(), given, &mut squares, &mut own);
            }
            if s + 1 < part.len() && !span.keys.is_empty() {
                self.step(span, &mut squares, sums.to_mut());
            }
        }
        (gradients, own)
    }

    /// The gradients of a span's queries, and of its keys as far as these queries see them.
    fn pull_span(
        &self,
        span: &Span,
        squares: &mut Squares<T>,
        sums: &Sums<T>,
        given: &Cotangent<T>,
        gradients: &mut HeadGradients<T>,
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
            let gradient = gradients.left_rows(queries, self.head.width());
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
        squares: &mut Squares<T>,
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

    /// The gradients of a part's keys as far as later queries see them.
    fn pull_keys(&self, part: &Part, end: &Sums<T>, given: &Cotangent<T>) -> HeadGradients<T> {
        let mut gradients = self.zero_gradients(part);
        let (mut sums, mut squares) = (Cow::Borrowed(end), self.squares());
        for (s, span) in part.iter().enumerate().rev() {
            if !span.keys.is_empty() && !sums.is_empty() {
                self.pull_span_keys(&span.keys, &mut squares, &sums, &mut gradients);
            }
            if s > 0 && !span.queries.is_empty() {
                sums.to_mut().lower(span.before);
                self.add_queries(span.queries.clone(), given, &mut squares, sums.to_mut());
            }
        }
        gradients
    }

    fn pull_span_keys(
        &self,
        keys: &Range<usize>,
        squares: &mut Squares<T>,
        sums: &Sums<T>,
        gradients: &mut HeadGradients<T>,
    ) {
        let weighted = self.weighted_values(keys, sums.reference);
        squares.of(self.head.right.row_range(keys.clone()));
        let gradient = gradients.right_rows(keys, self.head.width());
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

    fn zero_gradients(&self, part: &Part) -> HeadGradients<T> {
        let span = |range: fn(&Span) -> &Range<usize>| {
            let (first, last) = (range(&part[0]), range(&part[part.len() - 1]));
            first.start..last.end
        };
        HeadGradients::zeros(&self.head, span(|s| &s.queries), span(|s| &s.keys))
    }

    /// A head's gradients from those of its parts. Queries before the first part see nothing.
    fn gathered(
        &self,
        queries: Vec<HeadGradients<T>>,
        keys: Vec<HeadGradients<T>>,
    ) -> HeadGradients<T> {
        let parts = queries.into_iter().chain(keys);
        let (queries, keys) = (self.head.rows.queries, self.head.right.shape().0);
        let mut whole = HeadGradients::zeros(&self.head, 0..queries, 0..keys);
        parts.for_each(|part| whole.add(&self.head, &part));
        whole
    }
}
