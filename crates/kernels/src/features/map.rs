//! The feature map and its gradient.

use super::blocks::{BLOCK, Block, by_tasks, for_each_block};
use super::{PointsGradients, SpectralPoints, nonstationary, stationary};
use crate::Error;
use crate::matrix::mat;
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::memory::zeros;
use bochner_numerics::{Buffers, Mat, MatMut, Panels, Real, argument, matmul};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis};
use std::ops::Range;

/// Writes the random Fourier features of the rows of `x`: their inner products are the kernel.
///
/// $$\phi(x) = (c_1, \dots, c_R, s_1, \dots, s_R)$$
///
/// *where*
/// * stationary: $c_r = \cos w_r \cdot x$ and $s_r = \sin w_r \cdot x$
/// * non-stationary: $c_r = \cos w_{1r} \cdot x + \cos w_{2r} \cdot x$ and
///   $s_r = \sin w_{1r} \cdot x + \sin w_{2r} \cdot x$
///
/// In both cases $f(x, y) = \phi(x) \cdot \phi(y) / c$, with $c$ the points'
/// [`normaliser`](SpectralPoints::normaliser).
///
/// # Shapes
/// `x` is `[T, d]`, `phi` is `[T, 2R]`: all cosines, then all sines.
///
/// # Errors
/// [`Error::Argument`] if `x`, `w2` or `phi` does not fit the points, or if there are no points.
///
/// # Numerics
/// $O(T R d)$ time, in parallel over the rows; besides `phi`, memory does not grow with $T$. All other memory
/// comes from `buffers` and goes back there for the next call. A row of `x` that is not finite has features
/// that are NaN, and a point that is not finite makes its features NaN in every row; all others are unchanged.
/// The phase of an angle that overflows is computed in `f64`; beyond the range of `f64` it is arbitrary.
///
/// # Reference
/// Rahimi and Recht, *Random features for large-scale kernel machines*, 2007 (stationary);
/// Song, Jung, Kim, Moon, *Implicit kernel attention*, 2021, eq. 12 and 14.
///
/// # Example
/// ```
/// use bochner_kernels::{SpectralPoints, feature_map};
/// use bochner_numerics::Buffers;
/// use bochner_kernels::ndarray::{Array2, array};
///
/// let w = array![[0.5, -1.0]];
/// let points = SpectralPoints::Stationary { w: w.view() };
/// let mut phi = Array2::zeros((1, points.features()));
/// feature_map(array![[2.0, 1.0]].view(), &points, phi.view_mut(), &Buffers::default())?;
/// assert_eq!(phi, array![[1.0, 0.0]]); // cos 0, sin 0
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
pub fn feature_map<T: Real>(
    x: ArrayView2<T>,
    points: &SpectralPoints<T>,
    mut phi: ArrayViewMut2<T>,
    buffers: &Buffers<T>,
) -> Result<(), Error> {
    points.check_with("x", &x)?;
    let features = points.features();
    argument::shape("phi", &[x.nrows(), features], phi.shape())?;
    let Some(phi) = phi.as_slice_mut() else {
        let mut own = Array2::zeros(phi.raw_dim());
        feature_map(x, points, own.view_mut(), buffers)?;
        phi.assign(&own);
        return Ok(());
    };
    over(x, points, buffers, |x, angles| {
        by_tasks(phi, features, |rows, phi| {
            for_each_block(x, angles, rows, buffers, |block| {
                combine(points, &block, &mut phi[block.range(features)]);
            });
        });
    });
    Ok(())
}

/// Calls `f` with the rows of `x`, and with the points and their transposed panels.
fn over<T: Real, R>(
    x: ArrayView2<T>,
    points: &SpectralPoints<T>,
    buffers: &Buffers<T>,
    f: impl FnOnce(Mat<T>, (Mat<T>, &Panels<T>)) -> R,
) -> R {
    let (x, stacked) = (x.as_standard_layout(), points.stacked(buffers));
    let stacked = Mat::new(&stacked, points.stacked_rows(), points.width());
    let panels = Panels::new_in(buffers, stacked.t());
    f(mat(&x), (stacked, &panels))
}

/// Writes the features of a block from its sines and cosines.
fn combine<T: Real>(points: &SpectralPoints<T>, block: &Block<T>, phi: &mut [T]) {
    instructions::run(Combine { points, block, phi });
}

struct Combine<'a, 'b, 'p, T> {
    points: &'a SpectralPoints<'p, T>,
    block: &'a Block<'b, T>,
    phi: &'a mut [T],
}

impl<T: Real> Task for Combine<'_, '_, '_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let (count, Block { sin, cos, .. }) = (self.points.count(), self.block);
        match self.points {
            SpectralPoints::Stationary { .. } => stationary::combine(count, sin, cos, self.phi),
            SpectralPoints::Nonstationary { .. } => {
                nonstationary::combine(count, sin, cos, self.phi);
            }
        }
    }
}

/// The gradients of [`feature_map`].
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureMapGradients<T> {
    /// Along the inputs, `[T, d]`.
    pub x: Array2<T>,
    /// Along the points.
    pub points: PointsGradients<T>,
}

/// The vector-Jacobian product of [`feature_map`].
///
/// With $\dot\phi = (\dot c_1, \dots, \dot c_R, \dot s_1, \dots, \dot s_R)$ the cotangent of a row
/// and $a_r = w_r \cdot x$ its angles,
/// $$\dot a_r = \dot s_r \cos a_r - \dot c_r \sin a_r, \qquad
/// \dot x = \sum_r \dot a_r w_r, \qquad \dot w_r = \sum_t \dot a_{tr} x_t.$$
/// The two points of a pair each have their own angles and see the same cotangent.
///
/// # Shapes
/// `cotangent` is `[T, 2R]`, like the features.
///
/// # Errors
/// The errors of [`feature_map`], and [`Error::Argument`] if `cotangent` does not fit.
///
/// # Numerics
/// The angles are computed again, by blocks of rows; the gradients along the points are summed by
/// tasks of 1024 rows, in parallel, and these sums added in order: $O(T R d / 1024)$ numbers beside
/// the gradients. A row of `x` that is not finite makes the gradients along the points NaN even
/// where its cotangent is zero; replace the rows that are masked out by zeros first.
pub fn feature_map_vjp<T: Real>(
    x: ArrayView2<T>,
    points: &SpectralPoints<T>,
    cotangent: ArrayView2<T>,
    buffers: &Buffers<T>,
) -> Result<FeatureMapGradients<T>, Error> {
    points.check_with("x", &x)?;
    let (features, width) = (points.features(), points.width());
    argument::shape("cotangent", &[x.nrows(), features], cotangent.shape())?;
    let cotangent = cotangent.as_standard_layout();
    let cotangent = mat(&cotangent);
    let mut along_x = zeros(x.len());
    let parts = over(x, points, buffers, |x, angles| {
        by_tasks(&mut along_x, width, |rows, along_x| {
            let mut along_points = zeros(angles.0.data().len());
            let cotangent = cotangent.row_range(rows.clone()).data();
            for_each_block(x, angles, rows, buffers, |block| {
                let cotangent = &cotangent[block.range(features)];
                let along_x = &mut along_x[block.range(width)];
                let sums = &mut along_points;
                pull_back(block, points, angles.0, cotangent, along_x, sums);
            });
            along_points
        })
    });
    let along_points = parts.into_iter().reduce(|mut sum, part| {
        sum.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
        sum
    });
    let along_points = along_points.unwrap_or_else(|| zeros(points.stacked_rows() * width));
    Ok(FeatureMapGradients::new(points, along_x, along_points))
}

/// [`feature_map_vjp`] where the cotangent of a row follows from its features: these are made once for both,
/// some rows at a time.
///
/// `cotangent(rows, phi, out)` is given consecutive rows and their features, `[rows, 2R]`, and adds
/// their cotangents, `[rows, 2R]`, to zeros.
///
/// # Errors
/// The errors of [`feature_map`].
///
/// # Numerics
/// The function returns the numbers of the other two, but sums the gradients along the points of more than
/// 1024 rows in another order. It goes through one block of rows after the other on the calling thread,
/// for callers that have split the rows among threads; all memory but the gradients comes from `buffers`.
///
/// ```
/// use bochner_kernels::{SpectralPoints, feature_map_with_vjp};
/// use bochner_numerics::Buffers;
/// use bochner_kernels::ndarray::array;
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
    points.check_with("x", &x)?;
    let (length, width, features) = (x.nrows(), points.width(), points.features());
    let mut along_x = zeros(x.len());
    let mut along_points = zeros(points.stacked_rows() * width);
    let scratch = || buffers.any(features * BLOCK.min(length));
    let (mut phi, mut along_phi) = (scratch(), scratch());
    over(x, points, buffers, |x, angles| {
        for_each_block(x, angles, 0..length, buffers, |block| {
            let rows = block.range(1);
            let phi = &mut phi[..rows.len() * features];
            let along_phi = &mut along_phi[..phi.len()];
            along_phi.fill(T::zero());
            combine(points, &block, phi);
            cotangent(rows, phi, along_phi);
            let along_x = &mut along_x[block.range(width)];
            let sums = &mut along_points;
            pull_back(block, points, angles.0, along_phi, along_x, sums);
        });
    });
    Ok(FeatureMapGradients::new(points, along_x, along_points))
}

/// Writes the gradient along the block's inputs and adds that along the points.
fn pull_back<T: Real>(
    mut block: Block<T>,
    points: &SpectralPoints<T>,
    stacked: Mat<T>,
    cotangent: &[T],
    along_x: &mut [T],
    along_points: &mut [T],
) {
    instructions::run(Turn {
        points,
        cotangent,
        block: &mut block,
    });
    let (rows, width) = block.x.shape();
    let Block { x, angles, .. } = block;
    let per_row = stacked.shape().0;
    let angles = Mat::new(angles, rows, per_row);
    let along_x = MatMut::new(along_x, rows, width);
    matmul(T::one(), angles, stacked, T::zero(), along_x);
    let along_points = MatMut::new(along_points, per_row, width);
    matmul(T::one(), angles.t(), x, T::one(), along_points);
}

/// From the cotangents of features to those of the angles.
struct Turn<'a, 'b, 'p, T> {
    points: &'a SpectralPoints<'p, T>,
    cotangent: &'a [T],
    block: &'a mut Block<'b, T>,
}

impl<T: Real> Task for Turn<'_, '_, '_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let (count, cotangent) = (self.points.count(), self.cotangent);
        let Block {
            sin, cos, angles, ..
        } = self.block;
        match self.points {
            SpectralPoints::Stationary { .. } => {
                stationary::pull_back(count, sin, cos, cotangent, angles);
            }
            SpectralPoints::Nonstationary { .. } => {
                nonstationary::pull_back(count, sin, cos, cotangent, angles);
            }
        }
    }
}

impl<T: Real> FeatureMapGradients<T> {
    /// The gradients from those along the inputs and along the stacked points.
    fn new(points: &SpectralPoints<T>, along_x: Vec<T>, along_points: Vec<T>) -> Self {
        let width = points.width();
        let array = |data: Vec<T>| Array2::from_shape_vec((data.len() / width, width), data);
        let [x, w] = [along_x, along_points].map(|data| array(data).expect("whole rows"));
        let points = match points {
            SpectralPoints::Stationary { .. } => PointsGradients { w1: w, w2: None },
            SpectralPoints::Nonstationary { .. } => {
                let (w1, w2) = w.view().split_at(Axis(0), points.count());
                PointsGradients {
                    w1: w1.to_owned(),
                    w2: Some(w2.to_owned()),
                }
            }
        };
        Self { x, points }
    }
}
