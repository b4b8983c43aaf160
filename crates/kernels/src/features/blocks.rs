//! Angles, sines and cosines, a few rows at a time.

use super::SpectralPoints;
use bochner_numerics::elementary::sin_cos;
use bochner_numerics::{Mat, MatMut, Real, matmul};
use ndarray::ArrayView2;
use std::ops::Range;

/// Rows taken at a time, so that the angles, sines and cosines of a block stay in the cache.
pub(super) const BLOCK: usize = 128;

/// Some consecutive rows of the input, with the sines and cosines of their angles.
pub(super) struct Block<'a, T> {
    first: usize,
    /// The rows of the input, `[rows, d]`.
    pub(super) x: Mat<'a, T>,
    /// All points, `[R, d]` or `[2R, d]`.
    pub(super) points: Mat<'a, T>,
    /// `x` times the transposed points; the caller may write over it.
    pub(super) angles: &'a mut [T],
    pub(super) sin: &'a [T],
    pub(super) cos: &'a [T],
}

impl<T> Block<'_, T> {
    pub(super) fn rows(&self) -> usize {
        self.x.shape().0
    }

    /// Where this block's rows lie in a row-major matrix of `cols` columns.
    pub(super) fn range(&self, cols: usize) -> Range<usize> {
        self.first * cols..(self.first + self.rows()) * cols
    }
}

/// Calls `f` for consecutive blocks of rows, in order.
pub(super) fn for_each_block<T: Real>(
    x: ArrayView2<T>,
    points: &SpectralPoints<T>,
    mut f: impl FnMut(Block<T>),
) {
    let (length, width) = x.dim();
    let (x, stacked) = (x.as_standard_layout(), points.stacked());
    let per_row = stacked.nrows();
    let x = x.as_slice().expect("brought to row-major order");
    let stacked = stacked.as_slice().expect("stacked in row-major order");
    let (x, points) = (
        Mat::new(x, length, width),
        Mat::new(stacked, per_row, width),
    );

    let scratch = vec![T::zero(); per_row * length.min(BLOCK)];
    let (mut angles, mut sin, mut cos) = (scratch.clone(), scratch.clone(), scratch);
    for first in (0..length).step_by(BLOCK) {
        let rows = BLOCK.min(length - first);
        let x = x.row_range(first..first + rows);
        let angles = &mut angles[..rows * per_row];
        let (sin, cos) = (&mut sin[..rows * per_row], &mut cos[..rows * per_row]);
        let target = MatMut::new(angles, rows, per_row);
        matmul(T::one(), x, points.t(), T::zero(), target);
        sin_cos(angles, sin, cos);
        f(Block {
            first,
            x,
            points,
            angles,
            sin,
            cos,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    #[test]
    fn every_row_is_visited_once_and_in_order() {
        for length in [0, 1, BLOCK, BLOCK + 1, 3 * BLOCK - 1] {
            let x = Array2::from_shape_fn((length, 1), |(t, _)| t as f64);
            let w = ndarray::array![[1.0], [0.5]];
            let points = SpectralPoints::Stationary { w: w.view() };
            let mut angles = Vec::new();
            for_each_block(x.view(), &points, |block| {
                assert_eq!(block.range(2).start, angles.len());
                angles.extend_from_slice(block.angles);
                assert_eq!(block.range(2).end, angles.len());
                assert!((block.sin[1] - block.angles[1].sin()).abs() < 1e-15);
                assert!((block.cos[1] - block.angles[1].cos()).abs() < 1e-15);
            });
            let want: Vec<f64> = (0..length)
                .flat_map(|t| [t as f64, 0.5 * t as f64])
                .collect();
            assert_eq!(angles, want);
        }
    }
}
