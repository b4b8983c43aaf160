//! The vector-Jacobian product, in units in which nothing overflows.

use super::arguments::{Arguments, slice};
use super::features::{directions, directions_vjp, running_sums_vjp};
use super::forward::ROWS;
use super::loss::Slope;
use super::{PrimalScores, Saved};
use crate::mechanism::{Cotangents, Gradients};
use bochner_numerics::row_major::RowMajor;
use bochner_numerics::scaling::{bounded, log2_largest, multiplied, over_power, unit};
use bochner_numerics::{Mat, MatMut, Real, matmul_in, parallel};
use ndarray::Array4;

/// Rows of a head whose gradients of weights are added up by one task.
const PART: usize = 4 * ROWS;

/// Everything that the gradients of a head depend on. Cotangents and gradients of weights are divided by
/// $2^p$ with p the `power`.
struct Pulled<'a, T: Real> {
    call: &'a Arguments<'a, T>,
    saved: &'a Saved<T>,
    slopes: Vec<Slope>,
    cotangent: RowMajor<'a, T>,
    power: i32,
}

impl<T: Real> Arguments<'_, T> {
    pub(super) fn pull_back(&self, saved: &Saved<T>, cotangent: Cotangents<T>) -> Gradients<T> {
        let slopes = saved.loss.slopes(cotangent.penalty);
        let cotangent = RowMajor::new(cotangent.output, &self.buffers);
        let mut pulled = Pulled {
            power: 0,
            call: self,
            saved,
            slopes,
            cotangent,
        };
        pulled.choose_unit();
        pulled.gradients()
    }
}

impl<T: Real> Pulled<'_, T> {
    fn choose_unit(&mut self) {
        let (call, saved) = (self.call, self.saved);
        let PrimalScores { e, r } = &saved.scores;
        let scores = [e, r].map(|x| log2_largest(x.as_slice().expect("row-major")));
        let [we, wr] = [0, 1].map(|side| {
            log2_largest(call.weights[side]).max(log2_largest(&saved.projections[side]))
        });
        let sample = (0..call.all_heads()).map(|h| log2_largest(&call.sampled(h)));
        let others = [we, wr, log2_largest(call.wc)].into_iter().chain(scores);
        let others = others.chain(sample).fold(0.0, f64::max);
        let slope = |slope: &Slope| [slope.squares, slope.trace].map(|x| x.abs().log2());
        let slopes = self.slopes.iter().flat_map(slope);
        let of_scores = slopes.fold(f64::NEG_INFINITY, f64::max) + others;
        let of_penalty = of_scores + 2.0 * log2_largest(call.lambda).max(0.0);
        let largest = log2_largest(slice(&self.cotangent)).max(of_penalty);
        self.power = unit::<T>(largest, others);
        if self.power != 0 {
            let shape = self.cotangent.view().dim().into();
            let mut scaled = call.buffers.empty(slice(&self.cotangent).len());
            let all = slice(&self.cotangent).iter();
            scaled.extend(all.map(|&x| over_power(x, self.power)));
            self.cotangent = RowMajor::Copied(scaled, shape);
        }
    }

    /// A number of double precision in the unit of the cotangents; an infinity would have none.
    fn in_unit(&self, x: f64) -> T {
        multiplied(bounded(x), -self.power)
    }

    fn gradients(&self) -> Gradients<T> {
        let (call, power) = (self.call, self.power);
        let (time, d, s, dv) = (call.time, call.width, call.settings.rank, call.value_width);
        let (heads, parts) = (call.all_heads(), time.div_ceil(PART));
        let array = || vec![T::zero(); heads * time * d];
        let (mut dq, mut dk) = (array(), array());
        // A part holds the gradients of the projections and of the combinations of both sides.
        let [of_projection, of_combination] = [d * s, dv * s];
        let size = 2 * (of_projection + of_combination);
        let mut sums = vec![T::zero(); heads * parts * size];
        let by_head = (dq.chunks_mut(time * d).zip(dk.chunks_mut(time * d)))
            .zip(sums.chunks_mut(parts * size))
            .enumerate();
        let pieces = by_head.flat_map(|(h, ((dq, dk), sums))| {
            (dq.chunks_mut(PART * d).zip(dk.chunks_mut(PART * d)))
                .zip(sums.chunks_mut(size))
                .zip((0..).step_by(PART))
                .map(move |piece| (h, piece))
        });
        parallel::for_each(pieces.collect(), |(h, (((dq, dk), sums), start))| {
            let (projections, combinations) = sums.split_at_mut(2 * of_projection);
            let sides = [dq, dk].into_iter().enumerate();
            let sums = (projections.chunks_mut(of_projection))
                .zip(combinations.chunks_mut(of_combination));
            for ((side, dx), sums) in sides.zip(sums) {
                self.side_of_part(side, h, start, dx, sums);
            }
        });
        if call.causal {
            for dx in [&mut dq, &mut dk] {
                parallel::for_each_chunk(dx, time * d, |h, dx| {
                    let kept = call.length(h) * d;
                    running_sums_vjp(dx[..kept].chunks_exact_mut(d));
                });
            }
        }
        // The parts of each head, added up in order.
        let of_head = |h: usize| {
            let mut parts = sums[h * parts * size..][..parts * size].chunks(size);
            let mut sum = parts.next().expect("a part").to_vec();
            parts.for_each(|part| sum.iter_mut().zip(part).for_each(|(sum, &x)| *sum += x));
            sum
        };
        let sums: Vec<Vec<T>> = parallel::map(heads, of_head);
        let (dx, weights) = self.weights(&sums);
        let mut parameters = weights;
        parameters.extend(self.lambda());
        let halves = 2 * of_projection;
        for m in 0..call.heads {
            let total = |at| self.over_examples(m, |h| sums[h][halves + at]);
            for n in 0..dv {
                let sides = [0, 1].map(|side| side * of_combination + n * s);
                let all = sides.into_iter().flat_map(|start| start..start + s);
                parameters.extend(all.map(total).map(|x| multiplied::<T>(x, power)));
            }
        }
        let shape = (call.batch, call.heads, time, d);
        let streams = [Some(dq), Some(dk), dx].into_iter().flatten();
        let streams = streams.map(|dx| Array4::from_shape_vec(shape, dx).expect("one slab a head"));
        Gradients::new(streams.collect(), parameters)
    }

    /// The gradients of one part of the queries or the keys of a head, and what it adds to those of its
    /// projection, `[d, s]`, and its combination, `[dv, s]`.
    fn side_of_part(
        &self,
        side: usize,
        h: usize,
        start: usize,
        dx: &mut [T],
        (dprojection, dcombination): (&mut [T], &mut [T]),
    ) {
        let (call, saved) = (self.call, self.saved);
        let (time, d, s, dv) = (call.time, call.width, call.settings.rank, call.value_width);
        let projection = Mat::new(call.projection(&saved.projections, side, h), d, s);
        let scores = [&saved.scores.e, &saved.scores.r][side]
            .as_slice()
            .expect("row-major");
        let slope = self.slopes[h / call.heads].squares;
        let lambda = &call.lambda[h % call.heads * s..][..s];
        let coefficients = lambda
            .iter()
            .map(|l| self.in_unit(slope * l.as_f64().powi(2)));
        let coefficients: Vec<T> = coefficients.collect();
        let (buffers, one) = (&call.buffers, T::one());
        let end = call.length(h).min(start + PART);
        for (block, dx) in (start..end).step_by(ROWS).zip(dx.chunks_mut(ROWS * d)) {
            let rows = ROWS.min(end - block);
            let at = |width: usize| (h * time + block) * width..(h * time + block + rows) * width;
            let g = Mat::new(&slice(&self.cotangent)[at(dv)], rows, dv);
            let scores = &scores[at(s)];
            let mut dscores = buffers.any(rows * s);
            let into = MatMut::new(&mut dscores, rows, s);
            matmul_in(buffers, one, g, call.combination(side, h), T::zero(), into);
            if slope != 0.0 {
                for (dscores, scores) in dscores.chunks_exact_mut(s).zip(scores.chunks_exact(s)) {
                    let all = dscores.iter_mut().zip(scores).zip(&coefficients);
                    all.for_each(|((g, &x), &c)| *g += c * x);
                }
            }
            let into = MatMut::new(dcombination, dv, s);
            matmul_in(buffers, one, g.t(), Mat::new(scores, rows, s), one, into);

            let mut phi = buffers.any(rows * d);
            let inverses = directions(call.rows(side, h, block..block + rows), d, &mut phi);
            let dscores = Mat::new(&dscores, rows, s);
            let into = MatMut::new(dprojection, d, s);
            matmul_in(
                buffers,
                one,
                Mat::new(&phi, rows, d).t(),
                dscores,
                one,
                into,
            );
            let mut dphi = buffers.any(rows * d);
            let into = MatMut::new(&mut dphi, rows, d);
            matmul_in(buffers, one, dscores, projection.t(), T::zero(), into);
            directions_vjp((&phi, &inverses), &dphi, self.power, &mut dx[..rows * d]);
        }
    }

    /// The sum over the examples of what belongs to head `m` of each.
    fn over_examples(&self, m: usize, of: impl Fn(usize) -> T) -> f64 {
        let all = (m..self.call.all_heads()).step_by(self.call.heads);
        all.map(|h| of(h).as_f64()).sum()
    }

    /// Gradients of the layer's input, for data-dependent weights, and of both weights.
    fn weights(&self, sums: &[Vec<T>]) -> (Option<Vec<T>>, Vec<T>) {
        let (call, count) = (self.call, self.call.time * self.call.width);
        let heads = call.all_heads();
        let (dx, by_head) = if call.is_data_dependent() {
            let mut dx = vec![T::zero(); heads * count];
            let by_head = parallel::map_chunks(&mut dx, count, |h, dx| {
                self.weights_of_head(h, self.projections_of_head(h, &sums[h]), dx)
            });
            (Some(dx), by_head)
        } else {
            (
                None,
                parallel::map(heads, |h| self.projections_of_head(h, &sums[h])),
            )
        };
        let mut weights = Vec::new();
        for side in [0, 1] {
            for m in 0..call.heads {
                let trace: f64 = bounded(self.slopes.iter().map(|slope| slope.trace).sum());
                let trace = if call.traces_weights() { trace } else { 0.0 };
                let other = call.weight(1 - side, m).iter().enumerate();
                weights.extend(other.map(|(at, &other)| {
                    let sum = self.over_examples(m, |h| by_head[h][side][at]);
                    let more: T = self.in_unit(trace * other.as_f64());
                    multiplied::<T>(sum + more.as_f64(), self.power)
                }));
            }
        }
        (dx, weights)
    }

    /// Gradients of both projections of a head, `[d, s]`, given those by way of the scores.
    fn projections_of_head(&self, h: usize, sums: &[T]) -> [Vec<T>; 2] {
        let (call, count) = (self.call, self.call.width * self.call.settings.rank);
        let trace = match call.traces_weights() {
            true => T::zero(),
            false => self.in_unit(self.slopes[h / call.heads].trace),
        };
        [0, 1].map(|side| {
            let other = call.projection(&self.saved.projections, 1 - side, h);
            let sums = sums[side * count..][..count].iter().zip(other);
            match trace == T::zero() {
                true => sums.map(|(&sum, _)| sum).collect(),
                false => sums.map(|(&sum, &other)| sum + trace * other).collect(),
            }
        })
    }

    /// Writes the gradient of a head's input, given those of its projections; returns those of its weights.
    fn weights_of_head(&self, h: usize, dprojections: [Vec<T>; 2], dx: &mut [T]) -> [Vec<T>; 2] {
        let (call, one) = (self.call, T::one());
        let (d, s) = (call.width, call.settings.rank);
        let x = call.sampled(h);
        let n = x.len() / d;
        let mut dsample = vec![T::zero(); n * d];
        let weights = [0, 1].map(|side| {
            let weight = call.weight(side, h % call.heads);
            let dprojection = Mat::new(&dprojections[side], d, s);
            let mut dweight = vec![T::zero(); weight.len()];
            let into = MatMut::new(&mut dweight[..n * s], n, s);
            matmul_in(
                &call.buffers,
                one,
                Mat::new(&x, n, d),
                dprojection,
                T::zero(),
                into,
            );
            let weight = Mat::new(&weight[..n * s], n, s);
            let into = MatMut::new(&mut dsample, n, d);
            matmul_in(&call.buffers, one, weight, dprojection.t(), one, into);
            dweight
        });
        for (row, dsample) in call.sample(h, n).zip(dsample.chunks_exact(d)) {
            let dx = dx[row * d..][..d].iter_mut().zip(dsample);
            dx.for_each(|(dx, &g)| *dx = bounded(*dx + multiplied(g.as_f64(), self.power)));
        }
        weights
    }

    /// The gradient of $\lambda$, which is in no other unit.
    fn lambda(&self) -> impl Iterator<Item = T> {
        let (call, loss) = (self.call, &self.saved.loss);
        let width = call.lambda.len();
        call.lambda.iter().enumerate().map(move |(at, l)| {
            let of =
                |(b, slope): (usize, &Slope)| bounded(slope.squares * loss.squares[b * width + at]);
            let sum: f64 = bounded(self.slopes.iter().enumerate().map(of).sum());
            multiplied(l.as_f64() * sum, 0)
        })
    }
}
