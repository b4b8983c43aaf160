//! Angles, sines and cosines, a few rows at a time.

use bochner_numerics::elementary::{max_norm, sin_cos};
use bochner_numerics::{Buffers, Mat, MatMut, Panels, Real, matmul, parallel};
use std::ops::Range;

/// Rows taken at a time, so that the angles, sines and cosines of a block stay in the cache.
pub(super) const BLOCK: usize = 128;

/// Some consecutive rows of the input, with the sines and cosines of their angles.
pub(super) struct Block<'a, T> {
    /// The first row, counted from the first of the task.
    first: usize,
    /// The rows of the input, `[rows, d]`.
    pub(super) x: Mat<'a, T>,
    /// `x` times the transposed points; the caller may write over it.
    pub(super) angles: &'a mut [T],
    pub(super) sin: &'a [T],
    pub(super) cos: &'a [T],
}

impl<T> Block<'_, T> {
    pub(super) fn rows(&self) -> usize {
        self.x.shape().0
    }

    /// The range of this block's rows among those of the task, in a row-major matrix of `cols` columns.
    pub(super) fn range(&self, cols: usize) -> Range<usize> {
        self.first * cols..(self.first + self.rows()) * cols
    }
}

/// Blocks of one task.
const BLOCKS: usize = 8;

/// `f` of each task with its rows of `target`, `[T, cols]`, in parallel; the results come in order.
pub(super) fn by_tasks<T: Real, R: Send>(
    target: &mut [T],
    cols: usize,
    f: impl Fn(Range<usize>, &mut [T]) -> R + Send + Sync,
) -> Vec<R> {
    let rows = BLOCKS * BLOCK;
    parallel::map_chunks(target, rows * cols, |task, target| {
        let first = task * rows;
        f(first..first + target.len() / cols, target)
    })
}

/// Calls `f` for consecutive blocks of `rows`, in order, given the points and their transposed panels.
pub(super) fn for_each_block<T: Real>(
    x: Mat<T>,
    (points, panels): (Mat<T>, &Panels<T>),
    rows: Range<usize>,
    buffers: &Buffers<T>,
    mut f: impl FnMut(Block<T>),
) {
    let per_row = points.shape().0;
    let scratch = || buffers.any(per_row * rows.len().min(BLOCK));
    let (mut angles, mut sin, mut cos) = (scratch(), scratch(), scratch());
    for first in rows.clone().step_by(BLOCK) {
        let range = first..(first + BLOCK).min(rows.end);
        let x = x.row_range(range.clone());
        let angles = &mut angles[..range.len() * per_row];
        let (sin, cos) = (&mut sin[..angles.len()], &mut cos[..angles.len()]);
        let target = MatMut::new(angles, range.len(), per_row);
        matmul(T::one(), x, panels, T::zero(), target);
        if !max_norm(angles).is_finite() {
            turn_back(x, points, angles);
        }
        sin_cos(angles, sin, cos);
        f(Block {
            first: first - rows.start,
            x,
            angles,
            sin,
            cos,
        });
    }
}

/// Replaces the angles that overflowed by their phases. Beyond the range of `f64`, where rounding has long
/// left nothing of a phase, it takes the phases of smaller numbers. The angles of inputs and points that are
/// not finite become NaN.
#[cold]
fn turn_back<T: Real>(x: Mat<T>, points: Mat<T>, angles: &mut [T]) {
    let count = points.shape().0;
    for (i, angle) in angles
        .iter_mut()
        .enumerate()
        .filter(|(_, a)| !a.is_finite())
    {
        let pairs = x.row(i / count).iter().zip(points.row(i % count));
        let dot = |scale: f64| {
            let products =
                (pairs.clone()).map(|(x, w)| (x.as_f64() * scale) * (w.as_f64() * scale));
            products.sum::<f64>()
        };
        let exact = dot(1.0);
        let dot = if exact.is_finite() {
            exact
        } else {
            dot(2.0_f64.powi(-550))
        };
        let (sin, cos) = dot.sin_cos();
        *angle = T::of(sin.atan2(cos));
    }
}
