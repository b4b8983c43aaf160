//! The vector-Jacobian product.

use super::Saved;
use super::call::{Call, ROWS, slice};
use super::features::{directions, directions_vjp, running_sums};
use super::loss::Slope;
use crate::mechanism::{Cotangents, Gradients};
use bochner_numerics::row_major::RowMajor;
use bochner_numerics::{Mat, MatMut, Real, matmul_in, parallel};

/// The gradients of one side, the queries or the keys.
struct SideGradients<T> {
    /// Along the rows, `[B, M, T, d]`.
    rows: Vec<T>,
    /// Along the projection, `[d, s]`, and the combination, `[dv, s]`, of each head of all examples.
    heads: Vec<[Vec<T>; 2]>,
}

impl<T: Real> Call<'_, T> {
    pub(super) fn pull_back(&self, saved: &Saved<T>, cotangent: Cotangents<T>) -> Gradients<T> {
        let slopes = saved.loss.slopes(cotangent.penalty);
        let g = RowMajor::new(cotangent.output, &self.buffers);
        let mut sides = [0, 1].map(|side| self.pull_side(side, saved, slice(&g), &slopes));
        let (dx, mut parameters) = self.pull_weights(saved, &slopes, &sides);
        let squares = saved.loss.squares.chunks(self.lambda.len()).zip(&slopes);
        parameters.extend(self.lambda.iter().enumerate().map(|(at, l)| {
            let along = squares.clone().map(|(of, slope)| slope.squares * of[at]);
            T::of(l.as_f64() * along.sum::<f64>())
        }));
        let (s, dv) = (self.settings.rank, self.value_width);
        for (m, n) in (0..self.heads).flat_map(|m| (0..dv).map(move |n| (m, n))) {
            for side in &sides {
                let of = |at| self.over_examples(m, |h| side.heads[h][1][at]);
                parameters.extend((n * s..(n + 1) * s).map(of).map(T::of));
            }
        }
        let rows = sides.each_mut().map(|side| std::mem::take(&mut side.rows));
        let streams = rows.into_iter().chain(dx);
        let streams = streams.map(|dx| self.array(dx, self.width));
        Gradients::new(streams.collect(), parameters)
    }

    /// The gradients of one side by way of its scores, given the cotangent of the output.
    fn pull_side(
        &self,
        side: usize,
        saved: &Saved<T>,
        cotangent: &[T],
        slopes: &[Slope],
    ) -> SideGradients<T> {
        let (time, d, s, dv) = (self.time, self.width, self.settings.rank, self.value_width);
        let (buffers, one) = (&self.buffers, T::one());
        let scores = [&saved.scores.e, &saved.scores.r][side]
            .as_slice()
            .expect("row-major");
        let mut rows = vec![T::zero(); self.all_heads() * time * d];
        let heads = parallel::map_chunks(&mut rows, time * d, |h, dx| {
            let projection = Mat::new(self.projection(&saved.projections, side, h), d, s);
            let slope = slopes[h / self.heads].squares;
            let coefficient = |l: &T| T::of(slope * l.as_f64().powi(2));
            let coefficients: Vec<T> = self.lambda_of(h).iter().map(coefficient).collect();
            let [mut dprojection, mut dcombination] = [d, dv].map(|n| vec![T::zero(); n * s]);
            for (block, dx) in self.blocks(h).zip(dx.chunks_mut(ROWS * d)) {
                let (first, n) = (h * time + block.start, block.len());
                let g = Mat::new(&cotangent[first * dv..][..n * dv], n, dv);
                let scores = &scores[first * s..][..n * s];
                let mut dscores = buffers.any(n * s);
                let into = MatMut::new(&mut dscores, n, s);
                matmul_in(buffers, one, g, self.combination(side, h), T::zero(), into);
                for (dscores, scores) in dscores.chunks_exact_mut(s).zip(scores.chunks_exact(s)) {
                    let all = dscores.iter_mut().zip(scores).zip(&coefficients);
                    all.for_each(|((g, &x), &c)| *g += c * x);
                }
                let into = MatMut::new(&mut dcombination, dv, s);
                matmul_in(buffers, one, g.t(), Mat::new(scores, n, s), one, into);

                let mut phi = buffers.any(n * d);
                let inverses = directions(self.rows(side, h, block), d, &mut phi);
                let (dscores, of_phi) = (Mat::new(&dscores, n, s), Mat::new(&phi, n, d).t());
                let into = MatMut::new(&mut dprojection, d, s);
                matmul_in(buffers, one, of_phi, dscores, one, into);
                let mut dphi = buffers.any(n * d);
                let into = MatMut::new(&mut dphi, n, d);
                matmul_in(buffers, one, dscores, projection.t(), T::zero(), into);
                directions_vjp((&phi, &inverses), &dphi, &mut dx[..n * d]);
            }
            if self.causal {
                let kept = self.length(h) * d;
                running_sums(dx[..kept].chunks_exact_mut(d).rev(), d);
            }
            [dprojection, dcombination]
        });
        SideGradients { rows, heads }
    }

    /// The sum over the examples of what belongs to head `m` of each.
    fn over_examples(&self, m: usize, of: impl Fn(usize) -> T) -> f64 {
        let all = (m..self.all_heads()).step_by(self.heads);
        all.map(|h| of(h).as_f64()).sum()
    }

    /// Gradients of the layer's input, for data-dependent weights, and of both weights.
    fn pull_weights(
        &self,
        saved: &Saved<T>,
        slopes: &[Slope],
        sides: &[SideGradients<T>; 2],
    ) -> (Option<Vec<T>>, Vec<T>) {
        let traces_weights = self.settings.traces_weights();
        let projections = |h: usize| {
            [0, 1].map(|side| {
                let mut sums = sides[side].heads[h][0].clone();
                if !traces_weights {
                    let trace = T::of(slopes[h / self.heads].trace);
                    let other = self.projection(&saved.projections, 1 - side, h);
                    sums.iter_mut()
                        .zip(other)
                        .for_each(|(sum, &x)| *sum += trace * x);
                }
                sums
            })
        };
        let count = self.time * self.width;
        let mut dx = self
            .settings
            .is_data_dependent()
            .then(|| vec![T::zero(); self.all_heads() * count]);
        let by_head = match &mut dx {
            Some(dx) => {
                parallel::map_chunks(dx, count, |h, dx| self.pull_sample(h, projections(h), dx))
            }
            None => parallel::map(self.all_heads(), projections),
        };
        let trace: f64 = slopes.iter().map(|slope| slope.trace).sum();
        let trace = if traces_weights { trace } else { 0.0 };
        let mut weights = Vec::new();
        for (side, m) in [0, 1]
            .into_iter()
            .flat_map(|side| (0..self.heads).map(move |m| (side, m)))
        {
            let other = self.weight(1 - side, m).iter().enumerate();
            weights.extend(other.map(|(at, &other)| {
                let sum = self.over_examples(m, |h| by_head[h][side][at]);
                T::of(sum + trace * other.as_f64())
            }));
        }
        (dx, weights)
    }

    /// Writes the gradient of a head's input, given those of its projections; returns those of its weights.
    fn pull_sample(&self, h: usize, projections: [Vec<T>; 2], dx: &mut [T]) -> [Vec<T>; 2] {
        let (d, s, one) = (self.width, self.settings.rank, T::one());
        let sample = self.sampled(h);
        let n = sample.len() / d;
        let sample = Mat::new(&sample, n, d);
        let mut dsample = vec![T::zero(); n * d];
        let weights = [0, 1].map(|side| {
            let weight = self.weight(side, h);
            let projection = Mat::new(&projections[side], d, s);
            let mut dweight = vec![T::zero(); weight.len()];
            let into = MatMut::new(&mut dweight[..n * s], n, s);
            matmul_in(&self.buffers, one, sample, projection, T::zero(), into);
            let weight = Mat::new(&weight[..n * s], n, s);
            let into = MatMut::new(&mut dsample, n, d);
            matmul_in(&self.buffers, one, weight, projection.t(), one, into);
            dweight
        });
        for (row, dsample) in self.sample(h).zip(dsample.chunks_exact(d)) {
            let dx = dx[row * d..][..d].iter_mut().zip(dsample);
            dx.for_each(|(dx, &g)| *dx += g);
        }
        weights
    }
}
