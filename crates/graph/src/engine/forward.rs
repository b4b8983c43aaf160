//! The weights of edges, and the sums that targets receive.

use super::rows::{row, weighted_sums};
use super::scorer::{Arriving, Scorer};
use super::{Alpha, Call, PIECE};
use crate::compressed::cut_unwritten;
use crate::sums::RowSum;
use bochner_numerics::elementary::exp_in_place;
use bochner_numerics::instructions::{Arithmetic, Task, run};
use bochner_numerics::memory::written_by;
use bochner_numerics::scaling::bounded;
use bochner_numerics::{DropoutMask, Operations, Real, operations, parallel};
use std::ops::Range;

/// The weights, and the output of each head, `[Nt, H F]`, from the values, `[Ns, H F]`.
pub(super) fn attend<T: Real, S: Scorer<T>>(
    call: &Call<T>,
    scorer: &S,
    values: &[T],
) -> (Alpha<T>, Vec<T>) {
    let (rows, shape) = (&call.graph.by_target, call.shape);
    let edges = rows.entries();
    operations::record(Operations::multiply_adds(edges * shape.columns()));
    let weights = edges * shape.heads;
    let dropout = call.settings.dropout.as_ref();
    let lengths = [
        weights,
        dropout.map_or(0, |_| weights),
        rows.count() * shape.columns(),
    ];
    let [alpha, dropped, output] = written_by(lengths, |[alpha, dropped, output]| {
        let pieces = rows.pieces(PIECE);
        let arriving = pieces
            .iter()
            .map(|piece| rows.entries_of(piece.clone()).len());
        let alphas = cut_unwritten(alpha, shape.heads, arriving.clone());
        let droppeds = cut_unwritten(dropped, dropout.map_or(0, |_| shape.heads), arriving);
        let outputs = cut_unwritten(output, shape.columns(), pieces.iter().map(Range::len));
        let tasks = pieces.into_iter().zip(alphas.into_iter().zip(droppeds));
        parallel::for_each(
            tasks.zip(outputs).collect(),
            |((targets, (alpha, dropped)), output)| {
                let (alpha, dropped) = (alpha.zeros(), dropped.zeros());
                run(Weights {
                    call,
                    scorer,
                    targets: targets.clone(),
                    alpha,
                });
                exp_in_place(alpha);
                run(Normalise {
                    call,
                    targets: targets.clone(),
                    alpha,
                });
                if let Some(dropout) = dropout {
                    run(DropOut {
                        dropout,
                        order: &call.graph.order[rows.entries_of(targets.clone())],
                        heads: shape.heads,
                        alpha,
                        dropped,
                    });
                }
                run(Receive {
                    call,
                    values,
                    targets,
                    weights: if dropout.is_some() { dropped } else { alpha },
                    output: output.zeros(),
                });
            },
        );
    });
    let alpha = Alpha {
        normalised: alpha,
        dropped: dropout.map(|_| dropped),
    };
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
    fn run<A: Arithmetic>(self, _: A) {
        // Loops of a known length are unrolled.
        match self.call.shape.heads {
            1 => self.of_heads::<A>(1),
            8 => self.of_heads::<A>(8),
            heads => self.of_heads::<A>(heads),
        }
    }
}

impl<T: Real, S: Scorer<T>> Weights<'_, '_, T, S> {
    #[inline(always)]
    fn of_heads<A: Arithmetic>(self, heads: usize) {
        let mut scores = Vec::new();
        let mut largest = vec![S::Score::of(0.0); heads];
        let mut rest = self.alpha;
        for edges in arriving(self.call, self.targets) {
            let (alpha, after) = rest.split_at_mut(edges.sources.len() * heads);
            rest = after;
            scores.resize(alpha.len(), S::Score::of(0.0));
            self.scorer.write::<A>(&edges, heads, &mut scores);
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

/// Divides each head's weights by their sum over the edges of a target.
struct Normalise<'a, 'b, T: Real> {
    call: &'a Call<'a, 'b, T>,
    targets: Range<usize>,
    alpha: &'a mut [T],
}

impl<T: Real> Task for Normalise<'_, '_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        match self.call.shape.heads {
            1 => self.of_heads(1),
            8 => self.of_heads(8),
            heads => self.of_heads(heads),
        }
    }
}

impl<T: Real> Normalise<'_, '_, T> {
    #[inline(always)]
    fn of_heads(self, heads: usize) {
        let (mut inverse, mut sum) = (vec![T::zero(); heads], RowSum::new(heads));
        let mut rest = self.alpha;
        for edges in arriving(self.call, self.targets) {
            let (alpha, after) = rest.split_at_mut(edges.sources.len() * heads);
            rest = after;
            inverse.fill(T::zero());
            for alpha in alpha.chunks_exact(heads) {
                super::rows::add(sum.next(), alpha);
            }
            sum.add_to(&mut inverse);
            inverse.iter_mut().for_each(|sum| *sum = sum.recip());
            for alpha in alpha.chunks_exact_mut(heads) {
                for (alpha, &inverse) in alpha.iter_mut().zip(&inverse) {
                    *alpha *= inverse;
                }
            }
        }
    }
}

/// Multiplies the weights by the factors of dropout.
struct DropOut<'a, T> {
    dropout: &'a DropoutMask,
    /// The caller's number of each edge.
    order: &'a [u32],
    heads: usize,
    alpha: &'a [T],
    dropped: &'a mut [T],
}

impl<T: Real> Task for DropOut<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let heads = self.heads;
        let rows = self.dropped.chunks_exact_mut(heads);
        let rows = rows.zip(self.alpha.chunks_exact(heads));
        for ((dropped, alpha), &edge) in rows.zip(self.order) {
            let first = u64::from(edge) * heads as u64;
            for ((dropped, &alpha), index) in dropped.iter_mut().zip(alpha).zip(first..) {
                *dropped = alpha * self.dropout.factor(index);
            }
        }
    }
}

/// Adds up the values by their weights.
struct Receive<'a, 'b, T: Real> {
    call: &'a Call<'a, 'b, T>,
    values: &'a [T],
    targets: Range<usize>,
    weights: &'a [T],
    output: &'a mut [T],
}

impl<T: Real> Task for Receive<'_, '_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let shape = self.call.shape;
        let outputs = self.output.chunks_exact_mut(shape.columns());
        let mut rest = self.weights;
        for (edges, output) in arriving(self.call, self.targets).zip(outputs) {
            let (weights, after) = rest.split_at(edges.sources.len() * shape.heads);
            rest = after;
            let edges = edges.sources.iter().zip(weights.chunks_exact(shape.heads));
            let edges = edges.map(|(&source, weights)| {
                (weights, row(self.values, source as usize, shape.columns()))
            });
            weighted_sums::<T, A>(edges, shape.width, output);
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
                heads,
                out: &mut own,
            });
            let left_out = scorer.left_out(&edges);
            let left_out = left_out.unwrap_or_else(|| vec![0.0; heads]);
            let whole = own.iter().zip(left_out.iter().cycle());
            scores.extend(whole.map(|(score, rest)| bounded(T::of(score.as_f64() + rest))));
        }
        scores
    });
    parts.concat()
}

struct Write<'a, 'b, T: Real, S: Scorer<T>> {
    scorer: &'a S,
    edges: &'a Arriving<'b>,
    heads: usize,
    out: &'a mut [S::Score],
}

impl<T: Real, S: Scorer<T>> Task for Write<'_, '_, T, S> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        self.scorer.write::<A>(self.edges, self.heads, self.out);
    }
}
