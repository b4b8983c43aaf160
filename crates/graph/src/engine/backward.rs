//! From the cotangent of the output to the gradients along scores and values.

use super::forward::arriving;
use super::preactivation::Preactivation;
use super::rows::{add_scaled, dot, row};
use super::{Call, PIECE, Received, classic};
use crate::compressed::cut;
use bochner_numerics::instructions::{Arithmetic, Task, run};
use bochner_numerics::{Operations, Real, operations, parallel};
use std::ops::Range;

/// The gradients along the scores, `[E, H]` by place, and along the values, `[Ns, H F]`.
///
/// With $P$ the weights, $\delta$ the factors of dropout and $G_{ij} = \delta_{ij}\, \dot o_i \cdot
/// v_j$: $\dot s_{ij} = P_{ij} (G_{ij} - \sum_l P_{il} G_{il})$,
/// $\dot v_j = \sum_i \delta_{ij} P_{ij} \dot o_i$.
pub(super) fn pull_back<T: Real>(
    call: &Call<T>,
    alpha: &[T],
    cotangent: &[T],
    received: Received<T>,
) -> (Vec<T>, Vec<T>) {
    operations::record(Operations::multiply_adds(
        2 * call.graph.edge_count() * call.shape.columns(),
    ));
    let along_scores = along_scores(call, alpha, cotangent, received);
    let along_values = along_values(call, alpha, cotangent, received);
    (along_scores, along_values)
}

fn along_scores<T: Real>(
    call: &Call<T>,
    alpha: &[T],
    cotangent: &[T],
    received: Received<T>,
) -> Vec<T> {
    let (rows, heads) = (&call.graph.by_target, call.shape.heads);
    let mut out = vec![T::zero(); alpha.len()];
    let pieces = rows.pieces(PIECE);
    let arriving = pieces.iter().map(|piece| rows.entries_of(piece.clone()));
    let parts = cut(&mut out, heads, arriving.clone().map(|places| places.len()));
    let tasks = pieces.iter().cloned().zip(arriving).zip(parts).collect();
    parallel::for_each(tasks, |((targets, places), out)| {
        run(AlongScores {
            call,
            received,
            targets,
            alpha: &alpha[places.start * heads..places.end * heads],
            cotangent,
            out,
        });
    });
    out
}

struct AlongScores<'a, 'b, T: Real> {
    call: &'a Call<'a, 'b, T>,
    received: Received<'a, T>,
    targets: Range<usize>,
    alpha: &'a [T],
    cotangent: &'a [T],
    out: &'a mut [T],
}

impl<T: Real> Task for AlongScores<'_, '_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let (shape, received) = (self.call.shape, self.received);
        let mut means = vec![T::zero(); shape.heads];
        let (mut rest, mut alpha_rest) = (self.out, self.alpha);
        for edges in arriving(self.call, self.targets) {
            let length = edges.sources.len() * shape.heads;
            let (out, after) = rest.split_at_mut(length);
            rest = after;
            let (alpha, after) = alpha_rest.split_at(length);
            alpha_rest = after;
            let cotangent = row(self.cotangent, edges.target, shape.columns());
            means.fill(T::zero());
            let outs = out
                .chunks_exact_mut(shape.heads)
                .zip(alpha.chunks_exact(shape.heads));
            let outs = outs.zip(edges.sources).zip(edges.places);
            for (((out, alpha), &source), place) in outs {
                let value = row(received.values, source as usize, shape.columns());
                let heads = cotangent.chunks_exact(shape.width);
                let heads = heads.zip(value.chunks_exact(shape.width));
                for (out, (cotangent, value)) in out.iter_mut().zip(heads) {
                    *out = dot::<T, A>(cotangent, value);
                }
                received.drop_out(place, out);
                for ((mean, &alpha), &g) in means.iter_mut().zip(alpha).zip(&*out) {
                    *mean = A::mul_add(alpha, g, *mean);
                }
            }
            let outs = out
                .chunks_exact_mut(shape.heads)
                .zip(alpha.chunks_exact(shape.heads));
            for (out, alpha) in outs {
                for ((out, &alpha), &mean) in out.iter_mut().zip(alpha).zip(&means) {
                    *out = alpha * (*out - mean);
                }
            }
        }
    }
}

fn along_values<T: Real>(
    call: &Call<T>,
    alpha: &[T],
    cotangent: &[T],
    received: Received<T>,
) -> Vec<T> {
    let (rows, columns) = (&call.graph.by_source, call.shape.columns());
    let mut out = vec![T::zero(); rows.count() * columns];
    let pieces = rows.pieces(PIECE);
    let parts = cut(&mut out, columns, pieces.iter().map(Range::len));
    parallel::for_each(pieces.into_iter().zip(parts).collect(), |(sources, out)| {
        run(AlongValues {
            call,
            received,
            sources,
            alpha,
            cotangent,
            out,
        });
    });
    out
}

struct AlongValues<'a, 'b, T: Real> {
    call: &'a Call<'a, 'b, T>,
    received: Received<'a, T>,
    sources: Range<usize>,
    alpha: &'a [T],
    cotangent: &'a [T],
    out: &'a mut [T],
}

impl<T: Real> Task for AlongValues<'_, '_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let (graph, shape) = (self.call.graph, self.call.shape);
        let mut factors = vec![T::zero(); shape.heads];
        for (source, out) in self.sources.zip(self.out.chunks_exact_mut(shape.columns())) {
            let entries = graph.by_source.places(source);
            let edges = graph
                .by_source
                .row(source)
                .iter()
                .zip(&graph.places[entries]);
            for (&target, &place) in edges {
                factors.copy_from_slice(row(self.alpha, place as usize, shape.heads));
                self.received.drop_out(place as usize, &mut factors);
                let cotangent = row(self.cotangent, target as usize, shape.columns());
                let heads = out.chunks_exact_mut(shape.width);
                let heads = heads.zip(cotangent.chunks_exact(shape.width));
                for (&factor, (out, cotangent)) in factors.iter().zip(heads) {
                    add_scaled::<T, A>(out, factor, cotangent);
                }
            }
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
    fn run<A: Arithmetic>(self) {
        let (heads, slope) = (self.call.shape.heads, self.call.slope());
        let mut u = vec![T::zero(); heads];
        let mut rest = self.x.chunks_exact_mut(heads);
        for edges in arriving(self.call, self.targets) {
            for ((&source, place), x) in edges.sources.iter().zip(edges.places).zip(&mut rest) {
                self.u.write(edges.target, source as usize, place, &mut u);
                classic::scale(x, &u, slope);
            }
        }
    }
}
