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

    /// The output, the scores, and the sums of the squares of a head's scores, `[B, M, s]`.
    pub(super) fn attend(
        &self,
        projections: &[Vec<T>; 2],
    ) -> (Array4<T>, PrimalScores<T>, Vec<f64>) {
        let (time, d, s, dv) = (self.time, self.width, self.settings.rank, self.value_width);
        let of_width = |width| vec![T::zero(); self.all_heads() * time * width];
        let (mut output, mut e, mut r) = (of_width(dv), of_width(s), of_width(s));
        let heads = output.chunks_mut(time * dv);
        let heads = heads.zip(e.chunks_mut(time * s).zip(r.chunks_mut(time * s)));
        let mut squares = vec![0.0; self.all_heads() * s];
        let heads = heads.zip(squares.chunks_mut(s)).enumerate();
        parallel::for_each(heads.collect(), |(h, ((output, (e, r)), squares))| {
            let blocks = output.chunks_mut(ROWS * dv);
            let blocks = blocks.zip(e.chunks_mut(ROWS * s).zip(r.chunks_mut(ROWS * s)));
            for (rows, (output, (e, r))) in self.blocks(h).zip(blocks) {
                let n = rows.len();
                let mut phi = self.buffers.any(n * d);
                for (side, scores) in [e, r].into_iter().enumerate() {
                    directions(self.rows(side, h, rows.clone()), d, &mut phi);
                    let projection = Mat::new(self.projection(projections, side, h), d, s);
                    let (phi, scores) = (Mat::new(&phi, n, d), &mut scores[..n * s]);
                    let into = MatMut::new(scores, n, s);
                    matmul_in(&self.buffers, T::one(), phi, projection, T::zero(), into);
                    for scores in scores.chunks_exact(s) {
                        let all = squares.iter_mut().zip(scores);
                        all.for_each(|(sum, x)| *sum += x.as_f64() * x.as_f64());
                    }
                    let (share, wc) = (T::of(side as f64), self.combination(side, h).t());
                    let scores = Mat::new(scores, n, s);
                    let into = MatMut::new(&mut output[..n * dv], n, dv);
                    matmul_in(&self.buffers, T::one(), scores, wc, share, into);
                }
            }
        });
        let scores = PrimalScores {
            e: self.array(e, s),
            r: self.array(r, s),
        };
        (self.array(output, dv), scores, squares)
    }
}
