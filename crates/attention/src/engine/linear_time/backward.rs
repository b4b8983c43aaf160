//! The backward pass: the forward pass's two steps, with queries and keys exchanged.
//!
//! With $y_j = [v_j | 1]$ and $u_i = [dO_i | -dO_i \cdot O_i] / Z_i$ the gradient of an unnormalised
//! weight is $u_i \cdot y_j$. Queries read the sums S over keys, $d\psi_i = S u_i$; keys read the
//! sums $W = \sum_i \psi_i u_i^T$ over the queries that see them, $d\psi_j = g_j W y_j$ and
//! $dy_j = g_j (W^T \psi_j + e \sum_i u_i)$, of which $dm_j = y_j \cdot dy_j$.

use super::features::SymmetricFeatures;
use super::forward::start;
use super::plan::{Part, Span};
use super::{LinearTime, Sums, by_parts};
use crate::engine::backward::Scratch;
use crate::engine::{Cotangent, HeadGradients, Level};
use bochner_numerics::{Mat, MatMut, Real, matmul};
use std::ops::Range;

/// Gradients of all heads, given what their parts start from.
pub(crate) fn backward<T: Real>(
    heads: &[LinearTime<T>],
    starts: &[Vec<Sums<T>>],
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
        let (mut sums, mut own) = (start.clone(), self.zeros());
        own.reference = part[0].before;
        for (s, span) in part.iter().enumerate() {
            self.pull_span(span, &sums, given, &mut gradients);
            if !own.is_empty() {
                self.add_queries(span.queries.clone(), given, &mut own);
            }
            if s + 1 < part.len() {
                self.step(span, &mut sums);
            }
        }
        (gradients, own)
    }

    /// The gradients of a span's queries, and of its keys as far as these queries see them.
    fn pull_span(
        &self,
        span: &Span,
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
            let psi = SymmetricFeatures::new(self.head.left.row_range(queries.clone()), self.scale);
            let cotangent = times_rows(sums, &u);
            psi.pull_back(&cotangent, gradients.left_rows(queries, self.head.width()));
        }
    }

    /// $u_i \exp(\text{reference} - r_i)$.
    fn cotangents(&self, queries: &Range<usize>, given: &Cotangent<T>, reference: Level) -> Vec<T> {
        let mut u = Vec::with_capacity(queries.len() * self.columns());
        for i in queries.clone() {
            let (row, cotangent) = (&given.statistics[i], given.cotangent.row(i));
            if row.normaliser == T::zero() {
                u.resize(u.len() + self.columns(), T::zero());
                continue;
            }
            let factor = T::of(reference.minus(row.reference).exp()) / row.normaliser;
            let outputs = given.output.row(i).iter().zip(cotangent);
            let delta: T = outputs.map(|(&o, &c)| o * c).sum();
            u.extend(cotangent.iter().map(|&c| c * factor));
            u.push(-delta * factor);
        }
        u
    }

    /// Adds queries to sums over queries.
    fn add_queries(&self, queries: Range<usize>, given: &Cotangent<T>, sums: &mut Sums<T>) {
        if queries.is_empty() {
            return;
        }
        let u = self.cotangents(&queries, given, sums.reference);
        let psi = SymmetricFeatures::new(self.head.left.row_range(queries), self.scale);
        sums.add(psi.transposed(), &u);
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
        let mut sums = end.clone();
        for (s, span) in part.iter().enumerate().rev() {
            if !span.keys.is_empty() && !sums.is_empty() {
                self.pull_span_keys(&span.keys, &sums, &mut gradients);
            }
            if s > 0 {
                sums.lower(span.before);
                self.add_queries(span.queries.clone(), given, &mut sums);
            }
        }
        gradients
    }

    fn pull_span_keys(
        &self,
        keys: &Range<usize>,
        sums: &Sums<T>,
        gradients: &mut HeadGradients<T>,
    ) {
        let (rows, columns, width) = (keys.len(), self.columns(), self.head.value_width());
        let (g, weighted) = self.weighted_values(keys, sums.reference);
        let psi = SymmetricFeatures::new(self.head.right.row_range(keys.clone()), self.scale);
        let cotangent = times_rows(sums, &weighted);
        psi.pull_back(&cotangent, gradients.right_rows(keys, self.head.width()));

        let mut dy = vec![T::zero(); rows * columns];
        matmul(
            T::one(),
            psi.transposed().t(),
            sums.matrix(),
            T::zero(),
            MatMut::new(&mut dy, rows, columns),
        );
        for (r, (dy, &g)) in dy.chunks_exact_mut(columns).zip(&g).enumerate() {
            for (dy, &total) in dy.iter_mut().zip(&sums.totals) {
                *dy = g * (*dy + self.floor * total);
            }
            let value = self.head.values.row(keys.start + r);
            let dot: T = value.iter().zip(&*dy).map(|(&v, &d)| v * d).sum();
            gradients.add_key(keys.start + r, &dy[..width], dot + dy[width]);
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

/// $S Y^T$, a column a row of `y`.
fn times_rows<T: Real>(sums: &Sums<T>, y: &[T]) -> Vec<T> {
    let (features, columns) = sums.matrix().shape();
    let rows = y.len() / columns;
    let mut product = vec![T::zero(); features * rows];
    matmul(
        T::one(),
        sums.matrix(),
        Mat::new(y, rows, columns).t(),
        T::zero(),
        MatMut::new(&mut product, features, rows),
    );
    product
}
