//! Features and their gradient in one pass.

use super::SpectralPoints;
use super::blocks::{BLOCK, for_each_block};
use super::map::{Combine, FeatureMapGradients, array, matrix, pull_back, unstack};
use crate::Error;
use bochner_numerics::memory::zeros;
use bochner_numerics::{Buffers, Mat, Panels, Real, instructions};
use ndarray::ArrayView2;
use std::ops::Range;

/// [`feature_map_vjp`](super::feature_map_vjp) where the cotangent of a row follows from its features: these are made once
/// for both, some rows at a time.
///
/// `cotangent(rows, phi, out)` is given consecutive rows and their features, `[rows, 2R]`, and adds
/// their cotangents, `[rows, 2R]`, to zeros.
///
/// # Errors
/// As [`feature_map`](super::feature_map).
///
/// # Numerics
/// The function returns the numbers of the other two, but sums the gradients along the points of more than
/// 1024 rows in another order. It goes through one block of rows after the other on the calling thread,
/// for callers that have split the rows among threads; all memory but the gradients comes from `buffers`.
///
/// ```
/// use bochner_kernels::{SpectralPoints, feature_map_with_vjp};
/// use bochner_numerics::Buffers;
/// use ndarray::array;
///
/// let (x, w) = (array![[0.3], [0.9]], array![[1.0]]);
/// let points = SpectralPoints::Stationary { w: w.view() };
/// // The sum of the cosines' squares.
/// let mut sum = 0.0;
/// let cotangent = |_, phi: &[f64], out: &mut [f64]| {
///     for (phi, out) in phi.chunks(2).zip(out.chunks_mut(2)) {
///         sum += phi[0] * phi[0];
///         out[0] += 2.0 * phi[0];
///     }
/// };
/// let gradients = feature_map_with_vjp(x.view(), &points, cotangent, &Buffers::default())?;
/// assert!((sum - (0.3_f64.cos().powi(2) + 0.9_f64.cos().powi(2))).abs() < 1e-15);
/// assert!((gradients.x[[1, 0]] + 1.8_f64.sin()).abs() < 1e-15);
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
pub fn feature_map_with_vjp<T: Real>(
    x: ArrayView2<T>,
    points: &SpectralPoints<T>,
    mut cotangent: impl FnMut(Range<usize>, &[T], &mut [T]),
    buffers: &Buffers<T>,
) -> Result<FeatureMapGradients<T>, Error> {
    points.check()?;
    points.check_input("x", &x)?;
    let (length, width, features) = (x.nrows(), points.width(), 2 * points.count());
    let per_row = points.stacked_rows();
    let (x, stacked) = (x.as_standard_layout(), points.stacked(buffers));
    let stacked = Mat::new(&stacked, per_row, width);
    let panels = Panels::new_in(buffers, stacked.t());
    let (mut along_x, mut along_points) = (zeros(length * width), zeros(per_row * width));
    let scratch = || buffers.any(features * BLOCK.min(length));
    let (mut phi, mut along_phi) = (scratch(), scratch());
    let both = (stacked, &panels);
    for_each_block(matrix(&x), both, 0..length, buffers, |block| {
        let rows = block.range(1);
        let phi = &mut phi[..rows.len() * features];
        let along_phi = &mut along_phi[..phi.len()];
        along_phi.fill(T::zero());
        instructions::run(Combine {
            points,
            block: &block,
            phi,
        });
        cotangent(rows, phi, along_phi);
        let along_x = &mut along_x[block.range(width)];
        pull_back(
            block,
            points,
            stacked,
            along_phi,
            along_x,
            &mut along_points,
        );
    });
    let along_x = array(length, width, along_x);
    let along_points = array(per_row, width, along_points);
    let points = unstack(points, along_points);
    Ok(FeatureMapGradients { x: along_x, points })
}

#[cfg(test)]
mod tests {
    use super::super::{feature_map, feature_map_vjp};
    use super::*;
    use bochner_numerics::check::random;

    #[test]
    fn features_and_their_gradient_in_one_pass_are_those_of_two() {
        let length = 2 * BLOCK + 3;
        let (x, cotangent) = (
            random::<f32, _>((length, 3), "x"),
            random((length, 10), "cotangent"),
        );
        let (w1, w2) = (random((5, 3), "w1"), random((5, 3), "w2"));
        let (w1, w2) = (w1.view(), w2.view());
        let buffers = Buffers::default();
        let stationary = SpectralPoints::Stationary { w: w1 };
        for points in [stationary, SpectralPoints::Nonstationary { w1, w2 }] {
            let phi = feature_map(x.view(), &points, &buffers).unwrap();
            let mut seen = Vec::new();
            let one_pass = |rows: Range<usize>, phi: &[f32], out: &mut [f32]| {
                assert_eq!(rows.start * 10, seen.len());
                seen.extend_from_slice(phi);
                out.copy_from_slice(&cotangent.as_slice().unwrap()[rows.start * 10..rows.end * 10]);
            };
            let got = feature_map_with_vjp(x.view(), &points, one_pass, &buffers);
            assert_eq!(seen, phi.as_slice().unwrap());
            assert_eq!(
                got,
                feature_map_vjp(x.view(), &points, cotangent.view(), &buffers)
            );
        }
    }
}
