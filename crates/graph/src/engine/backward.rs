//! The gradients along scores and values, from the cotangent of the output.

use super::forward::arriving;
use super::preactivation::Preactivation;
use super::rows::{add, dot_heads, leak, row, weighted_sums};
use super::{Alpha, Call, PIECE};
use crate::compressed::{cut, filled};
use crate::sums::RowSum;
use bochner_numerics::instructions::{Arithmetic, Task, run};
use bochner_numerics::{Operations, Real, operations, parallel};
use std::ops::Range;

/// The gradients along the scores, `[E, H]` by place, and along the values, `[Ns, H F]`.
///
/// With $P$ the weights, $D$ those after dropout and $G_{ij} = D_{ij} \dot o_i \cdot v_j$:
/// $\dot s_{ij} = G_{ij} - P_{ij} \sum_l G_{il}$, $\dot v_j = \sum_i D_{ij} \dot o_i$.
pub(super) fn pull_back<T: Real>(
    call: &Call<T>,
    alpha: &Alpha<T>,
    cotangent: &[T],
    values: &[T],
) -> (Vec<T>, Vec<T>) {
    operations::record(Operations::multiply_adds(
        2 * call.graph.edge_count() * call.shape.columns(),
    ));
    let along_scores = along_scores(call, alpha, cotangent, values);
    let along_values = along_values(call, alpha.applied(), cotangent);
    (along_scores, along_values)
}

fn along_scores<T: Real>(
    call: &Call<T>,
    alpha: &Alpha<T>,
    cotangent: &[T],
    values: &[T],
) -> Vec<T> {
    let (rows, heads) = (&call.graph.by_target, call.shape.heads);
    let pieces = rows.pieces(PIECE);
    let arriving = pieces.iter().map(|piece| rows.entries_of(piece.clone()));
    filled(arriving.map(|places| places.len()), heads, |i, out| {
        let places = rows.entries_of(pieces[i].clone());
        let places = places.start * heads..places.end * heads;
        run(AlongScores {
            call,
            values,
            targets: pieces[i].clone(),
            alpha: &alpha.normalised[places.clone()],
            applied: &alpha.applied()[places],
            cotangent,
            out,
        });
    })
}

struct AlongScores<'a, 'b, T: Real> {
    call: &'a Call<'a, 'b, T>,
    values: &'a [T],
    targets: Range<usize>,
    alpha: &'a [T],
    applied: &'a [T],
    cotangent: &'a [T],
    out: &'a mut [T],
}

impl<T: Real> Task for AlongScores<'_, '_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let shape = self.call.shape;
        let (mut means, mut sum) = (vec![T::zero(); shape.heads], RowSum::new(shape.heads));
        let mut rest = self.out;
        let mut alphas = self.alpha.chunks_exact(shape.heads);
        let mut applied = self.applied.chunks_exact(shape.heads);
        for edges in arriving(self.call, self.targets) {
            let (out, after) = rest.split_at_mut(edges.sources.len() * shape.heads);
            rest = after;
            let cotangent = row(self.cotangent, edges.target, shape.columns());
            means.fill(T::zero());
            let outs = out.chunks_exact_mut(shape.heads).zip(edges.sources);
            for ((out, &source), applied) in outs.zip(&mut applied) {
                let value = row(self.values, source as usize, shape.columns());
                dot_heads::<T, A>(cotangent, value, shape.width, out);
                out.iter_mut().zip(applied).for_each(|(out, &d)| *out *= d);
                add(sum.next(), out);
            }
            sum.add_to(&mut means);
            for (out, alpha) in out.chunks_exact_mut(shape.heads).zip(&mut alphas) {
                for ((out, &alpha), &mean) in out.iter_mut().zip(alpha).zip(&means) {
                    *out -= alpha * mean;
                }
            }
        }
    }
}

fn along_values<T: Real>(call: &Call<T>, applied: &[T], cotangent: &[T]) -> Vec<T> {
    let (rows, columns) = (&call.graph.by_source, call.shape.columns());
    let pieces = rows.pieces(PIECE);
    filled(pieces.iter().map(Range::len), columns, |i, out| {
        run(AlongValues {
            call,
            sources: pieces[i].clone(),
            applied,
            cotangent,
            out,
        });
    })
}

struct AlongValues<'a, 'b, T: Real> {
    call: &'a Call<'a, 'b, T>,
    sources: Range<usize>,
    applied: &'a [T],
    cotangent: &'a [T],
    out: &'a mut [T],
}

impl<T: Real> Task for AlongValues<'_, '_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let (graph, shape) = (self.call.graph, self.call.shape);
        for (source, out) in self.sources.zip(self.out.chunks_exact_mut(shape.columns())) {
            let entries = graph.by_source.places(source);
            let edges = graph
                .by_source
                .row(source)
                .iter()
                .zip(&graph.places[entries]);
            let edges = edges.map(|(&target, &place)| {
                let factors = row(self.applied, place as usize, shape.heads);
                (
                    factors,
                    row(self.cotangent, target as usize, shape.columns()),
                )
            });
            weighted_sums::<T, A>(edges, shape.width, out);
        }
    }
}

/// Multiplies what belongs to edges, `[E, H]` by place, by the slope of the LeakyReLU at $u$.
pub(super) fn scale_by_leak<T: Real>(call: &Call<T>, u: &Preactivation<T>, x: &mut [T]) {
    let (rows, heads) = (&call.graph.by_target, call.shape.heads);
    let pieces = rows.pieces(PIECE);
    let lengths = pieces
        .iter()
        .map(|piece| rows.entries_of(piece.clone()).len());
    let parts = cut(x, heads, lengths);
    parallel::for_each(
        pieces.iter().cloned().zip(parts).collect(),
        |(targets, x)| {
            run(ScaleByLeak {
                call,
                u,
                targets,
                x,
            });
        },
    );
}

struct ScaleByLeak<'a, 'b, T: Real> {
    call: &'a Call<'a, 'b, T>,
    u: &'a Preactivation<T>,
    targets: Range<usize>,
    x: &'a mut [T],
}

impl<T: Real> Task for ScaleByLeak<'_, '_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let (heads, slope) = (self.call.shape.heads, self.call.slope());
        let mut u = vec![T::zero(); heads];
        let mut rest = self.x.chunks_exact_mut(heads);
        for edges in arriving(self.call, self.targets) {
            for ((&source, place), x) in edges.sources.iter().zip(edges.places).zip(&mut rest) {
                self.u.write(edges.target, source as usize, place, &mut u);
                for (x, &u) in x.iter_mut().zip(&u) {
                    *x *= leak(u, slope);
                }
            }
        }
    }
}
