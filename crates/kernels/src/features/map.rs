//! The feature map and its gradient.

use super::blocks::{Block, by_tasks, for_each_block};
use super::{PointsGradients, SpectralPoints, nonstationary, stationary};
use crate::Error;
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::memory::zeros;
use bochner_numerics::{Buffers, Mat, MatMut, Panels, Real, argument, matmul};
use ndarray::{Array2, ArrayView2, Axis, CowArray, Ix2};

/// The random Fourier features of the rows of `x`: their inner products are the kernel.
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
/// `x` is `[T, d]`, the result `[T, 2R]`: all cosines, then all sines.
///
/// # Errors
/// [`Error::Argument`] if `x` or `w2` does not fit the points, or if there are
/// none.
///
/// # Numerics
/// $O(T R d)$ time, in parallel over the rows; besides the result, memory does not grow with $T$.
/// All other memory comes from `buffers` and goes back there for the next call. A
/// row of `x` that is not finite makes its own row of the result NaN and no other, a point its own
/// features of every row. Where an angle overflows, its phase is taken beyond the type's range; beyond
/// that of `f64` it is some phase.
///
/// # Reference
/// Rahimi and Recht, *Random features for large-scale kernel machines*, 2007 (stationary);
/// Song, Jung, Kim, Moon, *Implicit kernel attention*, 2021, eq. 12 and 14.
///
/// # Example
/// ```
/// use bochner_kernels::{SpectralPoints, feature_map};
/// use bochner_numerics::Buffers;
/// use ndarray::array;
///
/// let w = array![[0.5, -1.0]];
/// let points = SpectralPoints::Stationary { w: w.view() };
/// let phi = feature_map(array![[2.0, 1.0]].view(), &points, &Buffers::default())?;
/// assert_eq!(phi, array![[1.0, 0.0]]); // cos 0, sin 0
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
pub fn feature_map<T: Real>(
    x: ArrayView2<T>,
    points: &SpectralPoints<T>,
    buffers: &Buffers<T>,
) -> Result<Array2<T>, Error> {
    let (length, width) = (x.nrows(), points.features());
    let mut phi = zeros(length * width);
    feature_map_into(x, points, &mut phi, buffers)?;
    Ok(array(length, width, phi))
}

/// [`feature_map`] into row-major memory that is there already.
///
/// # Errors
/// As [`feature_map`], and [`Error::Argument`] if `phi` is not as long as the features.
pub fn feature_map_into<T: Real>(
    x: ArrayView2<T>,
    points: &SpectralPoints<T>,
    phi: &mut [T],
    buffers: &Buffers<T>,
) -> Result<(), Error> {
    points.check()?;
    points.check_input("x", &x)?;
    let count = points.count();
    argument::shape("phi", &[x.nrows() * 2 * count], &[phi.len()])?;
    let (x, stacked) = (x.as_standard_layout(), points.stacked(buffers));
    let stacked = Mat::new(&stacked, points.stacked_rows(), points.width());
    let (x, panels) = (matrix(&x), Panels::new_in(buffers, stacked.t()));
    by_tasks(phi, 2 * count, |rows, phi| {
        for_each_block(x, (stacked, &panels), rows, buffers, |block| {
            let phi = &mut phi[block.range(2 * count)];
            let block = &block;
            instructions::run(Combine { points, block, phi });
        });
    });
    Ok(())
}

/// From sines and cosines to features.
pub(super) struct Combine<'a, 'b, 'p, T> {
    pub(super) points: &'a SpectralPoints<'p, T>,
    pub(super) block: &'a Block<'b, T>,
    pub(super) phi: &'a mut [T],
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
/// As [`feature_map`], and [`Error::Argument`] if `cotangent` does not fit.
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
    points.check()?;
    points.check_input("x", &x)?;
    let (count, width) = (points.count(), points.width());
    argument::shape("cotangent", &[x.nrows(), 2 * count], cotangent.shape())?;
    let (length, per_row) = (x.nrows(), points.stacked_rows());
    let (x, stacked) = (x.as_standard_layout(), points.stacked(buffers));
    let (x, stacked) = (matrix(&x), Mat::new(&stacked, per_row, width));
    let panels = Panels::new_in(buffers, stacked.t());
    let cotangent = cotangent.as_standard_layout();
    let cotangent = matrix(&cotangent);

    let mut along_x = zeros(length * width);
    let parts = by_tasks(&mut along_x, width, |rows, along_x| {
        let mut along_points = vec![T::zero(); per_row * width];
        let cotangent = cotangent.row_range(rows.clone()).data();
        for_each_block(x, (stacked, &panels), rows, buffers, |block| {
            let cotangent = &cotangent[block.range(2 * count)];
            let along_x = &mut along_x[block.range(width)];
            pull_back(
                block,
                points,
                stacked,
                cotangent,
                along_x,
                &mut along_points,
            );
        });
        along_points
    });
    let along_points = parts.into_iter().reduce(|mut sum, part| {
        sum.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
        sum
    });
    let along_points = along_points.unwrap_or_else(|| vec![T::zero(); per_row * width]);
    let along_x = array(length, width, along_x);
    let along_points = array(per_row, width, along_points);
    let points = unstack(points, along_points);
    Ok(FeatureMapGradients { x: along_x, points })
}

/// Writes the gradient along the block's inputs and adds that along the points.
pub(super) fn pull_back<T: Real>(
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

pub(super) fn matrix<'a, T: Real>(x: &'a CowArray<'_, T, Ix2>) -> Mat<'a, T> {
    let data = x.as_slice().expect("brought to row-major order");
    Mat::new(data, x.nrows(), x.ncols())
}

pub(super) fn array<T>(rows: usize, cols: usize, data: Vec<T>) -> Array2<T> {
    Array2::from_shape_vec((rows, cols), data).expect("allocated with this shape")
}

pub(super) fn unstack<T: Real>(points: &SpectralPoints<T>, w: Array2<T>) -> PointsGradients<T> {
    match points {
        SpectralPoints::Stationary { .. } => PointsGradients { w1: w, w2: None },
        SpectralPoints::Nonstationary { .. } => {
            let (w1, w2) = w.view().split_at(Axis(0), points.count());
            PointsGradients {
                w1: w1.to_owned(),
                w2: Some(w2.to_owned()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::blocks::BLOCK;
    use super::*;
    use crate::testing::refused;
    use bochner_numerics::check::{assert_gradient, random};
    use ndarray::array;

    fn pairing(phi: &Array2<f64>, cotangent: &Array2<f64>) -> f64 {
        (phi * cotangent).sum()
    }

    #[test]
    fn features_agree_with_the_definition_across_blocks() {
        let length = 2 * BLOCK + 3;
        let (x, w1) = (random::<f64, _>((length, 3), "x"), random((5, 3), "w1"));
        let w2 = random((5, 3), "w2");
        let nonstationary = SpectralPoints::Nonstationary {
            w1: w1.view(),
            w2: w2.view(),
        };
        let phi_s = feature_map(
            x.view(),
            &SpectralPoints::Stationary { w: w1.view() },
            &Buffers::default(),
        )
        .unwrap();
        let phi_ns = feature_map(x.view(), &nonstationary, &Buffers::default()).unwrap();
        for t in [0, BLOCK - 1, BLOCK, length - 1] {
            for r in 0..5 {
                let a: f64 = x.row(t).dot(&w1.row(r));
                let b: f64 = x.row(t).dot(&w2.row(r));
                let close = |got: f64, want: f64| assert!((got - want).abs() < 1e-12);
                close(phi_s[[t, r]], a.cos());
                close(phi_s[[t, 5 + r]], a.sin());
                close(phi_ns[[t, r]], a.cos() + b.cos());
                close(phi_ns[[t, 5 + r]], a.sin() + b.sin());
            }
        }
    }

    #[test]
    fn stationary_gradients_agree_with_finite_differences() {
        let (x, w) = (random((4, 3), "x"), random((5, 3), "w"));
        let cotangent = random((4, 10), "cotangent");
        let points = SpectralPoints::Stationary { w: w.view() };
        let got =
            feature_map_vjp(x.view(), &points, cotangent.view(), &Buffers::default()).unwrap();
        assert_gradient(&got.x, &x, |x| {
            pairing(
                &feature_map(x, &points, &Buffers::default()).unwrap(),
                &cotangent,
            )
        });
        assert_gradient(&got.points.w1, &w, |w| {
            let points = SpectralPoints::Stationary { w };
            pairing(
                &feature_map(x.view(), &points, &Buffers::default()).unwrap(),
                &cotangent,
            )
        });
        assert_eq!(got.points.w2, None);
    }

    #[test]
    fn nonstationary_gradients_agree_with_finite_differences_across_blocks() {
        let length = BLOCK + 2;
        let x = random((length, 2), "x");
        let (w1, w2) = (random((3, 2), "w1"), random((3, 2), "w2"));
        let cotangent = random((length, 6), "cotangent");
        let value = |x: ArrayView2<f64>, w1: ArrayView2<f64>, w2: ArrayView2<f64>| {
            let points = SpectralPoints::Nonstationary { w1, w2 };
            pairing(
                &feature_map(x, &points, &Buffers::default()).unwrap(),
                &cotangent,
            )
        };
        let points = SpectralPoints::Nonstationary {
            w1: w1.view(),
            w2: w2.view(),
        };
        let got =
            feature_map_vjp(x.view(), &points, cotangent.view(), &Buffers::default()).unwrap();
        assert_gradient(&got.x, &x, |x| value(x, w1.view(), w2.view()));
        assert_gradient(&got.points.w1, &w1, |w1| value(x.view(), w1, w2.view()));
        assert_gradient(&got.points.w2.unwrap(), &w2, |w2| {
            value(x.view(), w1.view(), w2)
        });
    }

    #[test]
    fn the_memory_layout_of_the_arguments_does_not_matter() {
        let (x, w1) = (random::<f32, _>((6, 4), "x"), random((3, 4), "w1"));
        let (w2, cotangent) = (random((3, 4), "w2"), random((6, 6), "cotangent"));
        let turned = [&x, &w1, &w2, &cotangent].map(|a| a.t().as_standard_layout().into_owned());
        let points = SpectralPoints::Nonstationary {
            w1: w1.view(),
            w2: w2.view(),
        };
        let turned_points = SpectralPoints::Nonstationary {
            w1: turned[1].t(),
            w2: turned[2].t(),
        };
        assert_eq!(
            feature_map(x.view(), &points, &Buffers::default()),
            feature_map(turned[0].t(), &turned_points, &Buffers::default())
        );
        assert_eq!(
            feature_map_vjp(x.view(), &points, cotangent.view(), &Buffers::default()),
            feature_map_vjp(
                turned[0].t(),
                &turned_points,
                turned[3].t(),
                &Buffers::default()
            )
        );
    }

    #[test]
    fn a_row_that_is_not_finite_spoils_no_other() {
        let (mut x, w) = (random::<f32, _>((9, 4), "x"), random((3, 4), "w"));
        let points = SpectralPoints::Stationary { w: w.view() };
        let want = feature_map(x.view(), &points, &Buffers::default()).unwrap();
        x.row_mut(4).fill(f32::INFINITY);
        let got = feature_map(x.view(), &points, &Buffers::default()).unwrap();
        for t in (0..9).filter(|&t| t != 4) {
            assert_eq!(got.row(t), want.row(t));
        }
        assert!(got.row(4).iter().all(|v| v.is_nan()));
    }

    #[test]
    fn a_point_that_is_not_finite_spoils_its_own_features_in_every_row() {
        let (x, w1) = (random::<f32, _>((9, 4), "x"), random((3, 4), "w1"));
        let w2 = random((3, 4), "w2");
        for poison in [f32::NAN, f32::INFINITY] {
            for n in 0..4 {
                let mut spoilt = w2.clone();
                spoilt[[1, n]] = poison;
                let of = |w2: &Array2<f32>| {
                    let (w1, w2) = (w1.view(), w2.view());
                    feature_map(
                        x.view(),
                        &SpectralPoints::Nonstationary { w1, w2 },
                        &Buffers::default(),
                    )
                    .unwrap()
                };
                let (want, got) = (of(&w2), of(&spoilt));
                for ((t, column), &got) in got.indexed_iter() {
                    let spoilt = column % 3 == 1;
                    assert!(if spoilt {
                        got.is_nan()
                    } else {
                        got == want[[t, column]]
                    });
                }
            }
        }
    }

    #[test]
    fn angles_that_overflow_keep_their_phase_in_single_precision() {
        let (x, w) = (
            array![[3e38_f32, 1.0], [2e38, -3e38]],
            array![[2.0_f32, 0.0], [3e38, 3e38]],
        );
        let points = SpectralPoints::Stationary { w: w.view() };
        let phi = feature_map(x.view(), &points, &Buffers::default()).unwrap();
        for ((t, r), _) in Array2::<()>::default((2, 2)).indexed_iter() {
            let products = x.row(t).into_iter().zip(w.row(r));
            let angle: f64 = products.map(|(&x, &w)| f64::from(x) * f64::from(w)).sum();
            assert!((f64::from(phi[[t, r]]) - angle.cos()).abs() < 1e-6);
            assert!((f64::from(phi[[t, 2 + r]]) - angle.sin()).abs() < 1e-6);
        }
        let (x, w) = (
            x.mapv(|x| f64::from(x).powi(8)),
            w.mapv(|w| f64::from(w).powi(8)),
        );
        let points = SpectralPoints::Stationary { w: w.view() };
        let phi = feature_map(x.view(), &points, &Buffers::default()).unwrap();
        assert!(phi.iter().all(|x| x.abs() <= 1.0));
    }

    #[test]
    fn no_rows_give_no_features_and_zero_gradients() {
        let (x, w) = (random::<f64, _>((0, 4), "x"), random((3, 4), "w"));
        let points = SpectralPoints::Stationary { w: w.view() };
        let phi = feature_map(x.view(), &points, &Buffers::default()).unwrap();
        assert_eq!(phi.dim(), (0, 6));
        let gradients =
            feature_map_vjp(x.view(), &points, phi.view(), &Buffers::default()).unwrap();
        assert_eq!(gradients.points.w1, Array2::<f64>::zeros((3, 4)));
    }

    #[test]
    fn arguments_that_do_not_fit_are_named() {
        let (x, w) = (random::<f64, _>((2, 3), "x"), random((5, 3), "w"));
        let points = SpectralPoints::Stationary { w: w.view() };
        let narrow = random((2, 2), "x");
        assert_eq!(
            refused(feature_map(narrow.view(), &points, &Buffers::default())),
            "x"
        );
        assert_eq!(
            refused(feature_map_vjp(
                x.view(),
                &points,
                x.view(),
                &Buffers::default()
            )),
            "cotangent"
        );
    }
}
