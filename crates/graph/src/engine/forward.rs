//! Weights of edges, and what targets receive.

use super::rows::{add_scaled, row};
use super::scorer::{Arriving, Scorer};
use super::{Call, PIECE, Received, held};
use crate::compressed::cut;
use bochner_numerics::elementary::exp_in_place;
use bochner_numerics::instructions::{Arithmetic, Task, run};
use bochner_numerics::{Dropout, Operations, Real, operations, parallel};
use std::ops::Range;

/// The weights, `[E, H]` by place, and the output of each head, `[Nt, H F]`.
pub(super) fn attend<T: Real, S: Scorer<T>>(
    call: &Call<T>,
    scorer: &S,
    received: Received<T>,
) -> (Vec<T>, Vec<T>) {
    let (rows, shape) = (&call.graph.by_target, call.shape);
    let edges = rows.entries();
    operations::record(Operations::multiply_adds(edges * shape.columns()));
    let mut alpha = vec![T::zero(); edges * shape.heads];
    let mut output = vec![T::zero(); rows.count() * shape.columns()];
    let pieces = rows.pieces(PIECE);
    let arriving = pieces
        .iter()
        .map(|piece| rows.entries_of(piece.clone()).len());
    let alphas = cut(&mut alpha, shape.heads, arriving);
    let outputs = cut(&mut output, shape.columns(), pieces.iter().map(Range::len));
    let tasks = pieces.into_iter().zip(alphas).zip(outputs).collect();
    parallel::for_each(tasks, |((targets, alpha), output)| {
        run(Weights {
            call,
            scorer,
            targets: targets.clone(),
            alpha,
        });
        exp_in_place(alpha);
        run(Receive {
            call,
            received,
            targets,
            alpha,
            output,
        });
    });
    (alpha, output)
}

/// All edges of a piece of work, target by target, with the rows of an array by place.
#[inline(always)]
pub(super) fn arriving<'a, T: Real>(
    call: &'a Call<T>,
    targets: Range<usize>,
) -> impl Iterator<Item = Arriving<'a>> {
    let rows = &call.graph.by_target;
    targets.map(move |target| Arriving {
        target,
        sources: rows.row(target),
        places: rows.places(target),
    })
}

/// Writes the scores less the largest of their target and head.
struct Weights<'a, 'b, T: Real, S> {
    call: &'a Call<'a, 'b, T>,
    scorer: &'a S,
    targets: Range<usize>,
    alpha: &'a mut [T],
}

impl<T: Real, S: Scorer<T>> Task for Weights<'_, '_, T, S> {
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let heads = self.call.shape.heads;
        let mut scores = Vec::new();
        let mut largest = vec![S::Score::of(0.0); heads];
        let mut rest = self.alpha;
        for edges in arriving(self.call, self.targets) {
            let (alpha, after) = rest.split_at_mut(edges.sources.len() * heads);
            rest = after;
            scores.resize(alpha.len(), S::Score::of(0.0));
            self.scorer.write::<A>(&edges, &mut scores);
            largest.fill(S::Score::of(f64::NEG_INFINITY));
            for scores in scores.chunks_exact(heads) {
                for (largest, &score) in largest.iter_mut().zip(scores) {
                    *largest = if score > *largest { score } else { *largest };
                }
            }
            let rows = alpha
                .chunks_exact_mut(heads)
                .zip(scores.chunks_exact(heads));
            for (alpha, scores) in rows {
                for ((alpha, &score), &largest) in alpha.iter_mut().zip(scores).zip(&largest) {
                    *alpha = T::of((score - largest).as_f64());
                }
            }
            for (head, largest) in largest.iter().enumerate() {
                if !largest.as_f64().is_finite() && !alpha.is_empty() {
                    let exact = self.scorer.differences(&edges, head);
                    for (alpha, exact) in alpha.chunks_exact_mut(heads).zip(exact) {
                        alpha[head] = T::of(exact);
                    }
                }
            }
        }
    }
}

/// Divides the weights by their sum, and adds up the values they weigh.
struct Receive<'a, 'b, T: Real> {
    call: &'a Call<'a, 'b, T>,
    received: Received<'a, T>,
    targets: Range<usize>,
    alpha: &'a mut [T],
    output: &'a mut [T],
}

impl<T: Real> Task for Receive<'_, '_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let (shape, received) = (self.call.shape, self.received);
        let mut inverse = vec![T::zero(); shape.heads];
        let mut factors = vec![T::zero(); shape.heads];
        let mut rest = self.alpha;
        let outputs = self.output.chunks_exact_mut(shape.columns());
        for (edges, output) in arriving(self.call, self.targets).zip(outputs) {
            let (alpha, after) = rest.split_at_mut(edges.sources.len() * shape.heads);
            rest = after;
            normalise(alpha, &mut inverse);
            let alphas = alpha.chunks_exact(shape.heads).zip(edges.sources);
            for ((alpha, &source), place) in alphas.zip(edges.places) {
                factors.copy_from_slice(alpha);
                received.drop_out(place, &mut factors);
                let value = row(received.values, source as usize, shape.columns());
                let heads = output.chunks_exact_mut(shape.width);
                let heads = heads.zip(value.chunks_exact(shape.width));
                for (&factor, (output, value)) in factors.iter().zip(heads) {
                    add_scaled::<T, A>(output, factor, value);
                }
            }
        }
    }
}

/// Divides each head's weights, `[edges, H]`, by their sum.
#[inline(always)]
fn normalise<T: Real>(alpha: &mut [T], inverse: &mut [T]) {
    let heads = inverse.len();
    inverse.fill(T::zero());
    for alpha in alpha.chunks_exact(heads) {
        super::rows::add(inverse, alpha);
    }
    inverse.iter_mut().for_each(|sum| *sum = sum.recip());
    for alpha in alpha.chunks_exact_mut(heads) {
        for (alpha, &inverse) in alpha.iter_mut().zip(&*inverse) {
            *alpha *= inverse;
        }
    }
}

impl<T: Real> Received<'_, T> {
    /// Multiplies what belongs to one edge, an element a head, by the factors of dropout.
    #[inline(always)]
    pub(super) fn drop_out(&self, place: usize, x: &mut [T]) {
        if let Some(factors) = self.factors {
            let own = row(factors, place, x.len());
            x.iter_mut().zip(own).for_each(|(x, &factor)| *x *= factor);
        }
    }
}

/// The factors of dropout on the weights, `[E, H]` by place.
pub(super) fn factors<T: Real>(call: &Call<T>, dropout: &Dropout) -> Vec<T> {
    let heads = call.shape.heads;
    let mut factors = vec![T::zero(); call.graph.edge_count() * heads];
    parallel::for_each_chunk(&mut factors, PIECE * heads, |i, factors| {
        run(Factors {
            dropout,
            order: &call.graph.order[i * PIECE..],
            heads,
            factors,
        });
    });
    factors
}

struct Factors<'a, T> {
    dropout: &'a Dropout,
    order: &'a [u32],
    heads: usize,
    factors: &'a mut [T],
}

impl<T: Real> Task for Factors<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let rows = self.factors.chunks_exact_mut(self.heads);
        for (row, &edge) in rows.zip(self.order) {
            let first = u64::from(edge) * self.heads as u64;
            for (index, factor) in (first..).zip(row) {
                *factor = self.dropout.factor(index);
            }
        }
    }
}

/// All scores, `[E, H]` by place.
pub(super) fn scores<T: Real, S: Scorer<T>>(call: &Call<T>, scorer: &S) -> Vec<T> {
    let (rows, heads) = (&call.graph.by_target, call.shape.heads);
    let pieces = rows.pieces(PIECE);
    let parts = parallel::map(pieces.len(), |i| {
        let mut scores = Vec::new();
        for edges in arriving(call, pieces[i].clone()) {
            let mut own = vec![S::Score::of(0.0); edges.sources.len() * heads];
            run(Write {
                scorer,
                edges: &edges,
                out: &mut own,
            });
            let left_out = scorer.left_out(&edges);
            let left_out = left_out.unwrap_or_else(|| vec![0.0; heads]);
            let whole = own.iter().zip(left_out.iter().cycle());
            scores.extend(whole.map(|(score, rest)| held(T::of(score.as_f64() + rest))));
        }
        scores
    });
    parts.concat()
}

struct Write<'a, 'b, T: Real, S: Scorer<T>> {
    scorer: &'a S,
    edges: &'a Arriving<'b>,
    out: &'a mut [S::Score],
}

impl<T: Real, S: Scorer<T>> Task for Write<'_, '_, T, S> {
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        self.scorer.write::<A>(self.edges, self.out);
    }
}
