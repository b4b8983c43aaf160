//! The score of GATv2: a vector times the LeakyReLU of a vector.

use super::edge_term;
use super::forward::arriving;
use super::rows::{leak, leaky, row};
use super::scorer::{Arriving, Scorer};
use super::{Call, PIECE, Parts, elements};
use crate::compressed::{cut, filled, filled_with};
use crate::settings::Shape;
use crate::sums::{RowSum, sum_of};
use bochner_numerics::instructions::{Arithmetic, Task, run};
use bochner_numerics::{Real, parallel};
use ndarray::ArrayView2;
use std::ops::Range;

/// The values that are kept between the passes.
#[derive(Debug)]
pub(crate) struct Prepared<T> {
    /// `[H, F]`.
    a: Vec<T>,
    /// $z_{ij} = W_e e_{ij}$, `[E, H F]` by place.
    edge: Option<Vec<T>>,
}

impl<T: Real> Prepared<T> {
    pub(super) fn new(a: ArrayView2<T>, edge: Option<Vec<T>>) -> Self {
        let a = elements(a).into_owned();
        Self { a, edge }
    }
}

/// $a \cdot \mathrm{LeakyReLU}(x_i + y_j + z_{ij})$.
pub(super) struct Dynamic<'a, T> {
    own: &'a Prepared<T>,
    targets: &'a [T],
    sources: &'a [T],
    shape: Shape,
    slope: T,
}

impl<'a, T: Real> Dynamic<'a, T> {
    pub(super) fn new(call: &'a Call<T>, own: &'a Prepared<T>) -> Self {
        Self {
            own,
            targets: &call.targets,
            sources: &call.sources,
            shape: call.shape,
            slope: call.slope(),
        }
    }

    /// The gradients, from those along the scores and through the values.
    pub(super) fn pull_back(
        &self,
        call: &Call<T>,
        along_scores: Vec<T>,
        along_values: Vec<T>,
    ) -> Parts<T> {
        let (targets, a) = self.by_target(call, &along_scores);
        let mut sources = along_values;
        self.by_source(call, &along_scores, &mut sources);
        let term = call.settings.edges.as_ref();
        let of_term = |term| {
            let along_vectors = self.by_edge(call, &along_scores);
            edge_term::pull_back_vectors(call.graph, term, &along_vectors)
        };
        Parts {
            targets,
            sources,
            a,
            points: None,
            edges: term.map(of_term),
        }
    }

    /// The gradients along $z_{ij}$, `[E, H F]` by place.
    fn by_edge(&self, call: &Call<T>, along_scores: &[T]) -> Vec<T> {
        let rows = &call.graph.by_target;
        let pieces = rows.pieces(PIECE);
        let arriving = pieces.iter().map(|piece| rows.entries_of(piece.clone()));
        let lengths = arriving.map(|places| places.len());
        filled(lengths, self.shape.columns(), |i, out| {
            run(ByEdge {
                call,
                score: self,
                along_scores,
                targets: pieces[i].clone(),
                out,
            });
        })
    }

    /// The gradients along the targets' features and along $a$.
    fn by_target(&self, call: &Call<T>, along_scores: &[T]) -> (Vec<T>, Vec<T>) {
        let (rows, columns) = (&call.graph.by_target, self.shape.columns());
        let pieces = rows.pieces(PIECE);
        let (targets, along_a) = filled_with(pieces.iter().map(Range::len), columns, |i, out| {
            let mut along_a = vec![T::zero(); columns];
            run(ByTarget {
                call,
                score: self,
                along_scores,
                targets: pieces[i].clone(),
                out,
                along_a: &mut along_a,
            });
            along_a
        });
        (targets, sum_of(along_a, columns))
    }

    /// Adds the gradient along the sources' features.
    fn by_source(&self, call: &Call<T>, along_scores: &[T], out: &mut [T]) {
        let rows = &call.graph.by_source;
        let pieces = rows.pieces(PIECE);
        let parts = cut(out, self.shape.columns(), pieces.iter().map(Range::len));
        parallel::for_each(pieces.into_iter().zip(parts).collect(), |(sources, out)| {
            run(BySource {
                call,
                score: self,
                along_scores,
                sources,
                out,
            });
        });
    }

    /// The length of the sums of [`with_edge`](Self::with_edge).
    fn scratch(&self) -> usize {
        self.own.edge.as_ref().map_or(0, |_| self.shape.columns())
    }

    /// $x_i + z_{ij}$ of an edge with attributes, which is written to `sum`; $x_i$ of one without.
    #[inline(always)]
    fn with_edge<'x>(&self, x: &'x [T], place: usize, sum: &'x mut [T]) -> &'x [T] {
        let Some(edge) = &self.own.edge else {
            return x;
        };
        let terms = x.iter().zip(row(edge, place, x.len()));
        sum.iter_mut()
            .zip(terms)
            .for_each(|(sum, (&x, &z))| *sum = x + z);
        sum
    }

    /// Adds one edge's gradient along a sum $x_i + y_j$ to `out`.
    #[inline(always)]
    fn add_along_sum<A: Arithmetic>(&self, along_score: &[T], x: &[T], y: &[T], out: &mut [T]) {
        let width = self.shape.width;
        let sums = x.iter().zip(y).zip(&self.own.a).zip(out);
        for (n, (((&x, &y), &a), out)) in sums.enumerate() {
            let g = along_score[n / width] * leak(x + y, self.slope);
            *out = A::mul_add(g, a, *out);
        }
    }

    /// Adds one edge's gradient along $a$ to `out`.
    #[inline(always)]
    fn add_along_a<A: Arithmetic>(&self, along_score: &[T], x: &[T], y: &[T], out: &mut [T]) {
        let width = self.shape.width;
        for (n, ((&x, &y), out)) in x.iter().zip(y).zip(out).enumerate() {
            *out = A::mul_add(along_score[n / width], leaky(x + y, self.slope), *out);
        }
    }
}

impl<T: Real> Scorer<T> for Dynamic<'_, T> {
    type Score = T;

    #[inline(always)]
    fn write<A: Arithmetic>(&self, edges: &Arriving, heads: usize, out: &mut [T]) {
        let width = self.shape.width;
        let target = row(self.targets, edges.target, heads * width);
        let mut sum = vec![T::zero(); self.scratch()];
        let scores = out.chunks_exact_mut(heads);
        for ((score, &source), place) in scores.zip(edges.sources).zip(edges.places.clone()) {
            let x = self.with_edge(target, place, &mut sum);
            let y = row(self.sources, source as usize, heads * width);
            for (head, score) in score.iter_mut().enumerate() {
                let part = head * width..(head + 1) * width;
                let a = &self.own.a[part.clone()];
                *score = against::<T, A>(a, &x[part.clone()], &y[part], self.slope);
            }
        }
    }
}

/// $a \cdot \mathrm{LeakyReLU}(x + y)$.
#[inline(always)]
fn against<T: Real, A: Arithmetic>(a: &[T], x: &[T], y: &[T], slope: T) -> T {
    let mut lanes = [T::zero(); 8];
    let parts = a.chunks(8).zip(x.chunks(8)).zip(y.chunks(8));
    for ((a, x), y) in parts {
        for (((lane, &a), &x), &y) in lanes.iter_mut().zip(a).zip(x).zip(y) {
            *lane = A::mul_add(a, leaky(x + y, slope), *lane);
        }
    }
    super::rows::added(lanes)
}

struct ByTarget<'a, 'b, T: Real> {
    call: &'a Call<'a, 'b, T>,
    score: &'a Dynamic<'a, T>,
    along_scores: &'a [T],
    targets: Range<usize>,
    out: &'a mut [T],
    along_a: &'a mut [T],
}

impl<T: Real> Task for ByTarget<'_, '_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let (score, Shape { heads, .. }) = (self.score, self.score.shape);
        let columns = score.shape.columns();
        let outs = self.out.chunks_exact_mut(columns);
        let mut sum = vec![T::zero(); score.scratch()];
        let (mut along_x, mut along_a) = (RowSum::new(columns), RowSum::new(columns));
        for (edges, out) in arriving(self.call, self.targets).zip(outs) {
            let target = row(score.targets, edges.target, columns);
            for (&source, place) in edges.sources.iter().zip(edges.places) {
                let x = score.with_edge(target, place, &mut sum);
                let y = row(score.sources, source as usize, columns);
                let g = row(self.along_scores, place, heads);
                score.add_along_sum::<A>(g, x, y, along_x.next());
                score.add_along_a::<A>(g, x, y, along_a.next());
            }
            along_x.add_to(out);
        }
        along_a.add_to(self.along_a);
    }
}

struct BySource<'a, 'b, T: Real> {
    call: &'a Call<'a, 'b, T>,
    score: &'a Dynamic<'a, T>,
    along_scores: &'a [T],
    sources: Range<usize>,
    out: &'a mut [T],
}

impl<T: Real> Task for BySource<'_, '_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let (score, graph) = (self.score, self.call.graph);
        let (heads, columns) = (score.shape.heads, score.shape.columns());
        let mut sum = vec![T::zero(); score.scratch()];
        let mut along_y = RowSum::new(columns);
        for (source, out) in self.sources.zip(self.out.chunks_exact_mut(columns)) {
            let y = row(score.sources, source, columns);
            let places = &graph.places[graph.by_source.places(source)];
            for (&target, &place) in graph.by_source.row(source).iter().zip(places) {
                let target = row(score.targets, target as usize, columns);
                let x = score.with_edge(target, place as usize, &mut sum);
                let g = row(self.along_scores, place as usize, heads);
                score.add_along_sum::<A>(g, x, y, along_y.next());
            }
            along_y.add_to(out);
        }
    }
}

struct ByEdge<'a, 'b, T: Real> {
    call: &'a Call<'a, 'b, T>,
    score: &'a Dynamic<'a, T>,
    along_scores: &'a [T],
    targets: Range<usize>,
    out: &'a mut [T],
}

impl<T: Real> Task for ByEdge<'_, '_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let (score, columns) = (self.score, self.score.shape.columns());
        let mut outs = self.out.chunks_exact_mut(columns);
        let mut sum = vec![T::zero(); score.scratch()];
        for edges in arriving(self.call, self.targets) {
            let target = row(score.targets, edges.target, columns);
            for ((&source, place), out) in edges.sources.iter().zip(edges.places).zip(&mut outs) {
                let x = score.with_edge(target, place, &mut sum);
                let y = row(score.sources, source as usize, columns);
                let g = row(self.along_scores, place, score.shape.heads);
                score.add_along_sum::<A>(g, x, y, out);
            }
        }
    }
}
