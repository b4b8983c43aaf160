//! The forward pass: projections, scores and outputs.

use super::PrimalScores;
use super::call::{Call, ROWS};
use super::features::directions;
use bochner_numerics::{Mat, MatMut, Real, matmul_in, parallel};
use ndarray::Array4;

impl<'a, T: Real> Call<'a, T> {
    /// Returns the projections that data-dependent weights make of the sample, `[B, M, d, s]` for each side; empty if
    /// the projections are parameters.
    pub(super) fn projections(&self) -> [Vec<T>; 2] {
        let (d, s) = (self.width, self.settings.rank);
        [0, 1].map(|side| {
            if !self.settings.is_data_dependent() {
                return Vec::new();
            }
            let mut all = vec![T::zero(); self.all_heads() * d * s];
            parallel::for_each_chunk(&mut all, d * s, |h, projection| {
                let x = self.sampled(h);
                let n = x.len() / d;
                let weight = Mat::new(&self.weight(side, h)[..n * s], n, s);
                let (x, into) = (Mat::new(&x, n, d), MatMut::new(projection, d, s));
                matmul_in(&self.buffers, T::one(), x.t(), weight, T::zero(), into);
            });
            all
        })
    }

    /// The projection of one side of head `h`, `[d, s]`.
    pub(super) fn projection<'p>(
        &self,
        projections: &'p [Vec<T>; 2],
        side: usize,
        h: usize,
    ) -> &'p [T]
    where
        'a: 'p,
    {
        if !self.settings.is_data_dependent() {
            return self.weight(side, h);
        }
        let count = self.width * self.settings.rank;
        &projections[side][h * count..][..count]
    }

    /// The scores of one side, and the sums of the squares of a head's scores, `[B, M, s]`.
    pub(super) fn scores(&self, projections: &[Vec<T>; 2], side: usize) -> (Array4<T>, Vec<f64>) {
        let (d, s) = (self.width, self.settings.rank);
        let mut scores = vec![T::zero(); self.all_heads() * self.time * s];
        let squares = parallel::map_chunks(&mut scores, self.time * s, |h, scores| {
            let projection = Mat::new(self.projection(projections, side, h), d, s);
            let mut squares = vec![0.0; s];
            for (rows, scores) in self.blocks(h).zip(scores.chunks_mut(ROWS * s)) {
                let n = rows.len();
                let mut phi = self.buffers.any(n * d);
                directions(self.rows(side, h, rows), d, &mut phi);
                let (phi, scores) = (Mat::new(&phi, n, d), &mut scores[..n * s]);
                let into = MatMut::new(scores, n, s);
                matmul_in(&self.buffers, T::one(), phi, projection, T::zero(), into);
                for scores in scores.chunks_exact(s) {
                    let all = squares.iter_mut().zip(scores);
                    all.for_each(|(sum, x)| *sum += x.as_f64() * x.as_f64());
                }
            }
            squares
        });
        (self.array(scores, s), squares.concat())
    }

    /// The output, given the scores of both sides.
    pub(super) fn output(&self, PrimalScores { e, r }: &PrimalScores<T>) -> Array4<T> {
        let (s, dv) = (self.settings.rank, self.value_width);
        let mut output = vec![T::zero(); self.all_heads() * self.time * dv];
        parallel::for_each_chunk(&mut output, self.time * dv, |h, output| {
            let n = self.length(h);
            for (side, scores) in [e, r].into_iter().enumerate() {
                let scores = scores.as_slice().expect("row-major");
                let scores = Mat::new(&scores[h * self.time * s..][..n * s], n, s);
                let (share, wc) = (T::of(side as f64), self.combination(side, h).t());
                let into = MatMut::new(&mut output[..n * dv], n, dv);
                matmul_in(&self.buffers, T::one(), scores, wc, share, into);
            }
        });
        self.array(output, dv)
    }
}
