//! The backward pass: the forward pass's two steps, with queries and keys exchanged.
//!
//! With $y_j = [v_j | 1]$ and $u_i = [dO_i | -dO_i \cdot O_i] / Z_i$ the gradient of an unnormalised
//! weight is $u_i \cdot y_j$. Queries read the sums S over keys, $d\psi_i = S u_i$; keys read the
//! sums $W = \sum_i \psi_i u_i^T$ over the queries that see them, $d\psi_j = g_j W y_j$ and
//! $dy_j = g_j (W^T \psi_j + e \sum_i u_i)$, of which $dm_j = y_j \cdot dy_j$.

use super::LinearTime;
use super::order::Squares;
use super::sums::{Augmented, Sums};
use crate::lanes::dot;
use crate::linear::{RunningSums as _, Span};
use crate::pairwise::{Cotangent, GradientRows, Scratch};
use bochner_numerics::Real;
use std::ops::Range;

impl<T: Real> LinearTime<'_, T> {
    /// The gradients of a span's queries, and of its keys as far as these queries see them.
    pub(super) fn pull_span(
        &self,
        span: &Span,
        squares: &mut Squares<T>,
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

    /// Adds queries to sums over queries.
    pub(super) fn add_span_queries(
        &self,
        queries: &Range<usize>,
        given: &Cotangent<T>,
        squares: &mut Squares<T>,
        sums: &mut Sums<T>,
    ) {
        let u = self.cotangents(queries, given, sums.reference);
        let squares = squares.of(self.head.left.row_range(queries.clone()));
        sums.add(squares, &u, self.numbers());
    }

    pub(super) fn pull_span_keys(
        &self,
        keys: &Range<usize>,
        squares: &mut Squares<T>,
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
