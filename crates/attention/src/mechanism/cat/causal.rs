//! The causal form by sums over blocks: one head at a time.
//!
//! Row i needs the exponentials of all scores up to its own relative to something that knows no later score. Rows in a
//! row mostly share that reference, and so their sums over the past are a product of matrices, whose bits are each
//! row's own.

use super::scores::Distribution;
use bochner_numerics::elementary::exp_in_place;
use bochner_numerics::{Buffer, Buffers, Mat, MatMut, Panels, Real, matmul_in, parallel};
use std::ops::Range;

/// Rows and values in a block.
const BLOCK: usize = 32;
/// References are multiples of this number. Growing scores then seldom change the reference, and exponentials relative
/// to it are still well in range.
const STEP: f64 = 16.0;

/// Rows of one block with one reference.
struct Segment<T> {
    /// The first row of the block.
    block: usize,
    rows: Range<usize>,
    /// At least the highest score up to each row, by less than [`STEP`] or by rounding.
    reference: T,
}

/// The segments of rows in `block`, if `highest` is the highest score before it.
fn segments<T: Real>(scores: &[T], block: Range<usize>, mut highest: T) -> Vec<Segment<T>> {
    let mut segments: Vec<Segment<T>> = Vec::new();
    for i in block.clone() {
        highest = highest.max(scores[i]);
        let step = T::of(STEP);
        let reference = (highest / step).ceil() * step;
        match segments.last_mut() {
            Some(last) if last.reference == reference => last.rows.end = i + 1,
            _ => segments.push(Segment {
                block: block.start,
                rows: i..i + 1,
                reference,
            }),
        }
    }
    segments
}

fn highest<T: Real>(scores: &[T]) -> T {
    scores.iter().copied().fold(T::neg_infinity(), T::max)
}

/// The exponentials of scores relative to a reference.
fn relative<T: Real>(
    scores: impl ExactSizeIterator<Item = T>,
    reference: T,
    buffers: &Buffers<T>,
) -> Buffer<T> {
    let mut weights = buffers.empty(scores.len());
    weights.extend(scores.map(|z| z - reference));
    exp_in_place(&mut weights);
    weights
}

/// $y \leftarrow y + a x$.
#[inline]
fn add<T: Real>(a: T, x: &[T], y: &mut [T]) {
    y.iter_mut().zip(x).for_each(|(y, &x)| *y += a * x);
}

/// Writes the attended values, `[n, dv]`.
pub(super) fn attend<T: Real>(
    distribution: &Distribution<T>,
    values: Mat<T>,
    buffers: &Buffers<T>,
    output: &mut [T],
) {
    let width = values.shape().1;
    let scores = &distribution.scores;
    parallel::for_each_chunk(output, BLOCK * width, |b, output| {
        let first = b * BLOCK;
        let block = first..first + output.len() / width;
        for segment in segments(scores, block, highest(&scores[..first])) {
            let Segment {
                rows, reference, ..
            } = segment;
            // Backwards, so that row `rows.end - 1 - r` weighs value j by element r + j.
            let past = scores[..rows.end].iter().rev().copied();
            let mut weights = relative(past, reference, buffers);
            let mut totals = [0.0; BLOCK];
            let mut total = 0.0;
            for (l, w) in weights.iter().rev().enumerate() {
                total += w.as_f64();
                if l >= rows.start {
                    totals[l - rows.start] = total;
                }
            }
            if !distribution.factors.is_empty() {
                let factors = distribution.factors[..rows.end].iter().rev();
                weights.iter_mut().zip(factors).for_each(|(w, f)| *w *= *f);
            }
            let mut sums = buffers.filled(rows.len() * width, T::zero());
            if first > 0 {
                let past = Mat::sliding(&weights[..rows.len() + first - 1], rows.len(), first);
                let sums = MatMut::new(&mut sums, rows.len(), width);
                matmul_in(
                    buffers,
                    T::one(),
                    past,
                    values.row_range(0..first),
                    T::zero(),
                    sums,
                );
            }
            for (r, sum) in sums.chunks_exact_mut(width).enumerate() {
                let i = rows.end - 1 - r;
                for j in first..=i {
                    add(weights[r + j], values.row(j), sum);
                }
                let total = T::of(totals[i - rows.start]);
                let row = &mut output[(i - first) * width..][..width];
                row.iter_mut()
                    .zip(&*sum)
                    .for_each(|(to, &sum)| *to = sum / total);
            }
        }
    });
}

/// The gradient along the scores; writes that along the values, given `g` along `output`.
pub(super) fn pull<T: Real>(
    distribution: &Distribution<T>,
    values: Mat<T>,
    (g, output): (Mat<T>, Mat<T>),
    buffers: &Buffers<T>,
    of_values: &mut [T],
) -> Vec<T> {
    let (n, width) = values.shape();
    let scores = &distribution.scores;
    let mut all = Vec::new();
    let mut before = T::neg_infinity();
    for first in (0..n).step_by(BLOCK) {
        let block = first..(first + BLOCK).min(n);
        all.extend(segments(scores, block.clone(), before));
        before = before.max(highest(&scores[block]));
    }

    // The cotangents over what their rows' weights are divided by, and their products with the output.
    let mut scaled = buffers.filled(n * width, T::zero());
    let mut products = buffers.filled(n, T::zero());
    let (mut reference, mut total, mut next) = (T::nan(), 0.0, 0);
    for segment in &all {
        if segment.reference != reference {
            (reference, total, next) = (segment.reference, 0.0, 0);
        }
        let lags = scores[next..segment.rows.end].iter().copied();
        let weights = relative(lags, reference, buffers);
        for (l, w) in (next..).zip(&weights) {
            total += w.as_f64();
            if l >= segment.rows.start {
                let row = &mut scaled[l * width..][..width];
                for ((to, &g), &o) in row.iter_mut().zip(g.row(l)).zip(output.row(l)) {
                    *to = g / T::of(total);
                    products[l] += *to * o;
                }
            }
        }
        next = segment.rows.end;
    }

    let panels = Panels::new_in(buffers, values.t());
    let mut of_scores = vec![T::zero(); n];
    for first in (0..n).step_by(BLOCK) {
        let places = first..(first + BLOCK).min(n);
        let count = places.len();
        // Backwards, as the rows of the forward pass.
        let mut sums = buffers.filled(count * width, T::zero());
        for segment in all.iter().filter(|segment| segment.block >= first) {
            let rows = &segment.rows;
            let of_rows = &scaled[rows.start * width..rows.end * width];
            // The smallest lag, which is negative within the block.
            let own = segment.block == first;
            let lags = match own {
                true => 0..rows.end - first,
                false => rows.start + 1 - places.end..rows.end - first,
            };
            let weights = relative(
                scores[lags.clone()].iter().copied(),
                segment.reference,
                buffers,
            );
            let mut of_weights = buffers.filled(lags.len(), T::zero());
            let mut dropped = weights.clone();
            for (w, l) in dropped.iter_mut().zip(lags.clone()) {
                *w *= distribution.factor(l);
            }
            let mut along = |i: usize, j: usize, product: T| {
                let l = i - j - lags.start;
                of_weights[l] += distribution.factor(i - j) * product - products[i];
            };
            if own {
                for (i, of_row) in rows.clone().zip(of_rows.chunks_exact(width)) {
                    for j in first..=i {
                        let product = of_row.iter().zip(values.row(j));
                        along(i, j, product.map(|(&a, &b)| a * b).sum());
                        let sum = &mut sums[(places.end - 1 - j) * width..][..width];
                        add(dropped[i - j], of_row, sum);
                    }
                }
            } else {
                let of_rows = Mat::new(of_rows, rows.len(), width);
                let mut pairs = buffers.any(rows.len() * count);
                let to = MatMut::new(&mut pairs, rows.len(), count);
                let columns = panels.columns(places.clone());
                matmul_in(buffers, T::one(), of_rows, columns, T::zero(), to);
                for (i, pairs) in rows.clone().zip(pairs.chunks_exact(count)) {
                    for (j, &product) in places.clone().zip(pairs) {
                        along(i, j, product);
                    }
                }
                let past = Mat::sliding(&dropped, count, rows.len());
                let sums = MatMut::new(&mut sums, count, width);
                matmul_in(buffers, T::one(), past, of_rows, T::one(), sums);
            }
            for ((to, w), slope) in of_scores[lags].iter_mut().zip(&weights).zip(&of_weights) {
                *to += *w * *slope;
            }
        }
        for (j, sum) in places.rev().zip(sums.chunks_exact(width)) {
            of_values[j * width..][..width].copy_from_slice(sum);
        }
    }
    of_scores
}
