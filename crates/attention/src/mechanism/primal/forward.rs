//! The forward pass: projections, scores and outputs.

use super::PrimalScores;
use super::arguments::Arguments;
use super::features::directions;
use bochner_numerics::elementary::max_norm;
use bochner_numerics::scaling::{bounded, log2_range, multiplied, over_power};
use bochner_numerics::{Mat, MatMut, Real, matmul_in, parallel};
use ndarray::Array4;

/// Rows of a head that are projected at a time.
pub(super) const ROWS: usize = 256;

impl<'a, T: Real> Arguments<'a, T> {
    /// Returns the projections that data-dependent weights make of the sample, `[B, M, d, s]` for each side; empty if
    /// the projections are parameters.
    pub(super) fn projections(&self) -> [Vec<T>; 2] {
        let (d, s) = (self.width, self.settings.rank);
        [0, 1].map(|side| {
            if !self.is_data_dependent() {
                return Vec::new();
            }
            let mut all = vec![T::zero(); self.all_heads() * d * s];
            parallel::for_each_chunk(&mut all, d * s, |h, projection| {
                let x = self.sampled(h);
                let n = x.len() / d;
                let weight = &self.weight(side, h % self.heads)[..n * s];
                let (x, weight) = (Mat::new(&x, n, d), Mat::new(weight, n, s));
                let into = MatMut::new(projection, d, s);
                matmul_in(&self.buffers, T::one(), x.t(), weight, T::zero(), into);
                mend(projection, s, |c, j| {
                    (0..n).map(move |r| (x.get(r, c), weight.get(r, j)))
                });
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
        if !self.is_data_dependent() {
            return self.weight(side, h % self.heads);
        }
        let count = self.width * self.settings.rank;
        &projections[side][h * count..][..count]
    }

    /// The part of `wc` that a side's scores of head `h` are multiplied with, `[dv, s]`.
    pub(super) fn combination(&self, side: usize, h: usize) -> Mat<'a, T> {
        let (s, dv) = (self.settings.rank, self.value_width);
        let wc = &self.wc[h % self.heads * dv * 2 * s..][..dv * 2 * s];
        Mat::new(wc, dv, 2 * s).columns(side * s..(side + 1) * s)
    }

    /// The output, the scores, and the sums of the squares of a head's scores, `[B, M, s]`.
    pub(super) fn attend(
        &self,
        projections: &[Vec<T>; 2],
    ) -> (Array4<T>, PrimalScores<T>, Vec<f64>) {
        let (time, d, s, dv) = (self.time, self.width, self.settings.rank, self.value_width);
        let (heads, blocks) = (self.all_heads(), time.div_ceil(ROWS));
        let array = |width| vec![T::zero(); heads * time * width];
        let (mut output, mut e, mut r) = (array(dv), array(s), array(s));
        let mut squares = vec![0.0; heads * blocks * s];
        let by_head = (output.chunks_mut(time * dv))
            .zip(e.chunks_mut(time * s).zip(r.chunks_mut(time * s)))
            .zip(squares.chunks_mut(blocks * s))
            .enumerate();
        let pieces = by_head.flat_map(|(h, ((output, (e, r)), squares))| {
            (output.chunks_mut(ROWS * dv))
                .zip(e.chunks_mut(ROWS * s).zip(r.chunks_mut(ROWS * s)))
                .zip(squares.chunks_mut(s))
                .zip((0..).step_by(ROWS))
                .map(move |piece| (h, piece))
        });
        parallel::for_each(
            pieces.collect(),
            |(h, (((output, (e, r)), squares), start))| {
                let rows = self.length(h).saturating_sub(start).min(ROWS);
                let mut phi = self.buffers.any(rows * d);
                let output = &mut output[..rows * dv];
                let mut sides = [e, r].map(|scores| &mut scores[..rows * s]);
                for (side, scores) in sides.iter_mut().enumerate() {
                    directions(self.rows(side, h, start..start + rows), d, &mut phi);
                    let projection = Mat::new(self.projection(projections, side, h), d, s);
                    let (phi, into) = (Mat::new(&phi, rows, d), MatMut::new(scores, rows, s));
                    matmul_in(&self.buffers, T::one(), phi, projection, T::zero(), into);
                    mend(scores, s, |i, j| {
                        (0..d).map(move |c| (phi.get(i, c), projection.get(c, j)))
                    });
                    for scores in scores.chunks_exact(s) {
                        let all = squares.iter_mut().zip(scores);
                        all.for_each(|(sum, x)| *sum += x.as_f64() * x.as_f64());
                    }
                    let (share, wc) = (T::of(side as f64), self.combination(side, h).t());
                    let into = MatMut::new(output, rows, dv);
                    let scores = Mat::new(scores, rows, s);
                    matmul_in(&self.buffers, T::one(), scores, wc, share, into);
                }
                let wc = [0, 1].map(|side| self.combination(side, h));
                mend(output, dv, |i, n| {
                    let sides = sides.iter().zip(wc);
                    sides.flat_map(move |(scores, wc)| {
                        (0..s).map(move |j| (scores[i * s + j], wc.get(n, j)))
                    })
                });
            },
        );
        let of_head = |squares: &[f64]| {
            let sum = |j| bounded(squares[j..].iter().step_by(s).sum());
            (0..s).map(sum).collect::<Vec<f64>>()
        };
        let squares = squares.chunks(blocks * s).flat_map(of_head).collect();
        let array = |values, width| {
            let shape = (self.batch, self.heads, time, width);
            Array4::from_shape_vec(shape, values).expect("one slab a head")
        };
        let scores = PrimalScores {
            e: array(e, s),
            r: array(r, s),
        };
        (array(output, dv), scores, squares)
    }
}

/// Computes those entries of a product of `width` columns again that overflowed, in units in which neither their terms
/// nor the sums do, given the factors of an entry's terms. The largest number stands for what is out of range.
///
/// An entry depends on its own terms alone: what is large elsewhere must not tell it what to do.
fn mend<T: Real, I: Iterator<Item = (T, T)>>(
    product: &mut [T],
    width: usize,
    terms: impl Fn(usize, usize) -> I,
) {
    if max_norm(product).is_finite() {
        return;
    }
    let power = (log2_range::<T>() / 2.0) as i32 + 16;
    let all = product.iter_mut().enumerate();
    for (at, x) in all.filter(|(_, x)| !x.is_finite()) {
        let terms = terms(at / width, at % width);
        let sum: T = terms
            .map(|(a, b)| over_power(a, power) * over_power(b, power))
            .sum();
        *x = multiplied(sum.as_f64(), 2 * power);
    }
}
