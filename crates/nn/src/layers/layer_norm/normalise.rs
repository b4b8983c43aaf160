//! The mathematics of layer normalisation, on plain rows.

use crate::rows::{add, by_blocks, sum, sum_over};
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::memory::Unwritten;
use bochner_numerics::{DropoutMask, Real};
use std::ops::Range;

/// What the backward pass of a normalisation needs.
#[derive(Clone, Debug)]
pub struct Normalised<T> {
    /// The rows with mean 0 and variance 1.
    rows: Vec<T>,
    /// The reciprocal standard deviation of each.
    scales: Vec<T>,
}

/// Multiplications that take as long as one row's element here.
const WORK: usize = 8;

/// The rows to normalise: those of `x`, plus what is kept of a branch's where there is one.
pub(super) struct Rows<'a, T> {
    pub(super) x: &'a [T],
    /// With the mask that drops from it, if one does.
    pub(super) branch: Option<(&'a [T], Option<&'a DropoutMask>)>,
}

impl<T: Real> Rows<'_, T> {
    fn write(&self, at: Range<usize>, rows: &mut [T]) {
        let Some((branch, mask)) = self.branch else {
            rows.copy_from_slice(&self.x[at]);
            return;
        };
        rows.copy_from_slice(&branch[at.clone()]);
        if let Some(mask) = mask {
            mask.scale(at.start as u64, rows);
        }
        add(rows, &self.x[at]);
    }

    /// The same times a power of two near the inverse of the largest summand, which is returned.
    fn write_shrunk(&self, at: Range<usize>, row: &mut [T]) -> T {
        let x = &self.x[at.clone()];
        let Some((branch, mask)) = self.branch else {
            let shrink = shrinking(largest(x));
            write_times(shrink, x, row);
            return shrink;
        };
        let branch = &branch[at.clone()];
        let shrink = shrinking(largest(x).max(largest(branch)));
        write_times(shrink, branch, row);
        if let Some(mask) = mask {
            mask.scale(at.start as u64, row);
        }
        for (sum, &x) in row.iter_mut().zip(x) {
            *sum += x * shrink;
        }
        shrink
    }
}

fn largest<T: Real>(values: &[T]) -> T {
    let larger = |most: T, x: &T| most.max(x.abs());
    values.iter().fold(T::zero(), larger)
}

/// A power of two that brings a number of this size to between 2 and 4.
///
/// Not to between 1 and 2: the inverse of the largest numbers' power is subnormal.
fn shrinking<T: Real>(largest: T) -> T {
    let (significand, exponent, _) = largest.integer_decode();
    let bits = (u64::BITS - significand.leading_zeros()) as i32;
    T::of(2.0_f64.powi(2 - bits - i32::from(exponent)))
}

fn write_times<T: Real>(factor: T, from: &[T], to: &mut [T]) {
    for (to, &x) in to.iter_mut().zip(from) {
        *to = x * factor;
    }
}

/// Normalises rows, then scales and shifts them.
pub(super) fn normalise<T: Real>(
    source: &Rows<'_, T>,
    gamma: &[T],
    beta: &[T],
    epsilon: f64,
) -> (Vec<T>, Normalised<T>) {
    let (n, width, epsilon) = (source.x.len(), gamma.len(), T::of(epsilon));
    let widths = [width, width, 1];
    let [y, rows, scales] = by_blocks(n / width, widths, n * WORK, |range, [y, rows, scales]| {
        let start = range.start * width;
        let [y, rows, scales] = [y, rows, scales].map(Unwritten::zeros);
        source.write(start..range.end * width, rows);
        instructions::run(Forward {
            y,
            rows,
            scales,
            gamma,
            beta,
            epsilon,
        });
        // Behind the loop over the rows, which stays as fast as it is.
        for (i, scale) in scales.iter_mut().enumerate() {
            if overflowed(*scale) {
                let (at, place) = (i * width..(i + 1) * width, start + i * width);
                let row = &mut rows[at.clone()];
                let shrink = source.write_shrunk(place..place + width, row);
                let [mean, factor, deviation] = shrunk_moments(row, shrink, epsilon);
                *scale = deviation;
                normalise_row(row, [mean, factor], [gamma, beta], &mut y[at]);
            }
        }
    });
    (y, Normalised { rows, scales })
}

/// Normalises rows in place, then scales and shifts them into `y`.
struct Forward<'a, T> {
    y: &'a mut [T],
    rows: &'a mut [T],
    scales: &'a mut [T],
    gamma: &'a [T],
    beta: &'a [T],
    epsilon: T,
}

impl<T: Real> Task for Forward<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let n = self.gamma.len();
        let rows = self.rows.chunks_exact_mut(n).zip(self.scales);
        for (y, (row, scale)) in self.y.chunks_exact_mut(n).zip(rows) {
            let mean;
            [mean, *scale] = moments(row, self.epsilon);
            normalise_row(row, [mean, *scale], [self.gamma, self.beta], y);
        }
    }
}

#[inline(always)]
fn normalise_row<T: Real>(
    row: &mut [T],
    [mean, factor]: [T; 2],
    [gamma, beta]: [&[T]; 2],
    y: &mut [T],
) {
    for ((y, x), (&gamma, &beta)) in y.iter_mut().zip(row).zip(gamma.iter().zip(beta)) {
        *x = (*x - mean) * factor;
        *y = *x * gamma + beta;
    }
}

/// Whether a sum of the row did: its reciprocal standard deviation is zero or NaN then.
fn overflowed<T: Real>(scale: T) -> bool {
    scale.is_nan() || scale <= T::zero()
}

/// Mean and reciprocal standard deviation of one row.
#[inline(always)]
fn moments<T: Real>(row: &[T], epsilon: T) -> [T; 2] {
    let mean = mean_deviation(row, T::zero());
    [mean, reciprocal_deviation(row, mean, epsilon)]
}

#[inline(always)]
fn mean_deviation<T: Real>(row: &[T], from: T) -> T {
    sum(row.len(), |i| row[i] - from) / T::of(row.len() as f64)
}

#[inline(always)]
fn reciprocal_deviation<T: Real>(row: &[T], mean: T, epsilon: T) -> T {
    let squares = sum(row.len(), |i| (row[i] - mean) * (row[i] - mean));
    (squares / T::of(row.len() as f64) + epsilon).sqrt().recip()
}

/// The moments of a row that was multiplied by `shrink`, and the reciprocal standard deviation of the
/// row itself.
#[cold]
fn shrunk_moments<T: Real>(row: &[T], shrink: T, epsilon: T) -> [T; 3] {
    let rough = mean_deviation(row, T::zero());
    // Here no epsilon hides what the mean was rounded by, and equal numbers have to become zero.
    let mean = rough + mean_deviation(row, rough);
    let factor = reciprocal_deviation(row, mean, epsilon * shrink * shrink);
    if factor.is_infinite() {
        return [mean, T::zero(), epsilon.sqrt().recip()];
    }
    [mean, factor, factor * shrink]
}

/// The gradients with respect to the rows, `gamma` and `beta`.
pub(super) fn normalise_vjp<T: Real>(dy: &[T], gamma: &[T], saved: &Normalised<T>) -> [Vec<T>; 3] {
    let n = gamma.len();
    let at = |range: &Range<usize>| range.start * n..range.end * n;
    let [dx] = by_blocks(dy.len() / n, [n], dy.len() * WORK, |range, [dx]| {
        instructions::run(Backward {
            dx: dx.zeros(),
            dy: &dy[at(&range)],
            rows: &saved.rows[at(&range)],
            scales: &saved.scales[range],
            gamma,
        });
    });
    let [dgamma, dbeta] = sum_over(dy.len() / n, dy.len() * WORK, |range| {
        let mut totals = [vec![T::zero(); n], vec![T::zero(); n]];
        instructions::run(ParameterSums {
            totals: &mut totals,
            dy: &dy[at(&range)],
            rows: &saved.rows[at(&range)],
        });
        totals
    });
    [dx, dgamma, dbeta]
}

struct Backward<'a, T> {
    dx: &'a mut [T],
    dy: &'a [T],
    rows: &'a [T],
    scales: &'a [T],
    gamma: &'a [T],
}

impl<T: Real> Task for Backward<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let n = self.gamma.len();
        let rows = self.rows.chunks_exact(n).zip(self.scales);
        let rows = self.dy.chunks_exact(n).zip(rows);
        for (dx, (dy, (row, &scale))) in self.dx.chunks_exact_mut(n).zip(rows) {
            row_vjp(row, dy, self.gamma, scale, dx);
        }
    }
}

/// Adds up the gradients of `gamma` and `beta`.
struct ParameterSums<'a, T> {
    totals: &'a mut [Vec<T>; 2],
    dy: &'a [T],
    rows: &'a [T],
}

impl<T: Real> Task for ParameterSums<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let [dgamma, dbeta] = self.totals;
        let n = dgamma.len();
        for (row, dy) in self.rows.chunks_exact(n).zip(self.dy.chunks_exact(n)) {
            let totals = dgamma.iter_mut().zip(dbeta.iter_mut());
            for ((dgamma, dbeta), (&x, &dy)) in totals.zip(row.iter().zip(dy)) {
                *dgamma += dy * x;
                *dbeta += dy;
            }
        }
    }
}

/// With $\hat x$ the normalised row and $g = \gamma \odot dy$:
/// $dx = (g - \overline{g} - \hat x\, \overline{g \odot \hat x}) / \sqrt{\sigma^2 + \epsilon}$.
#[inline(always)]
fn row_vjp<T: Real>(row: &[T], dy: &[T], gamma: &[T], scale: T, dx: &mut [T]) {
    let n = row.len();
    let (dy, gamma, dx) = (&dy[..n], &gamma[..n], &mut dx[..n]);
    let size = T::of(n as f64);
    let mean_g = sum(n, |i| dy[i] * gamma[i]) / size;
    let mean_gx = sum(n, |i| dy[i] * gamma[i] * row[i]) / size;
    for i in 0..n {
        dx[i] = (dy[i] * gamma[i] - mean_g - row[i] * mean_gx) * scale;
    }
}
