//! The kernel matrix that the features give, and its gradient.

use super::{PointsGradients, SpectralPoints, feature_map, feature_map_vjp};
use crate::Error;
use crate::matrix::{mat, product};
use bochner_numerics::{Buffers, Real, argument};
use ndarray::{Array2, ArrayView2};

/// The kernel between every row of `x` and every row of `y`.
///
/// $$f_S(x, y) = \frac1R \sum_r \cos w_r \cdot (x - y), \qquad
/// f_{NS}(x, y) = \frac1{4R} \sum_r \sum_{i=1}^2 \sum_{j=1}^2 \cos(w_{ir} \cdot x - w_{jr} \cdot y)$$
///
/// # Shapes
/// `x` is `[Tx, d]`, `y` is `[Ty, d]`, the result `[Tx, Ty]`.
///
/// # Errors
/// [`Error::Argument`] if `x`, `y` or `w2` does not fit the points, or if there
/// are none.
///
/// # Numerics
/// $|f| \le 1$ up to rounding. Computed as $\phi(x) \cdot \phi(y) / c$ with
/// [`feature_map`], in $O((T_x + T_y) R d + T_x T_y R)$ time; attention uses the features and
/// never forms this matrix.
///
/// # Reference
/// Rahimi, Recht, *Random Features for Large-Scale Kernel Machines*, NIPS 2007 (stationary); Song,
/// Jung, Kim, Moon, *Implicit Kernel Attention*, AAAI 2021, equations 12 and 14.
///
/// # Example
/// ```
/// use bochner_kernels::{SpectralPoints, kernel_matrix};
/// use bochner_kernels::ndarray::array;
///
/// let w = array![[3.0], [-1.0]];
/// let x = array![[0.5], [0.9]];
/// let f = kernel_matrix(x.view(), x.view(), &SpectralPoints::Stationary { w: w.view() })?;
/// let want = (1.2_f64.cos() + 0.4_f64.cos()) / 2.0;
/// assert!((f[[0, 1]] - want).abs() < 1e-12 && (f[[0, 0]] - 1.0).abs() < 1e-12);
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
pub fn kernel_matrix<T: Real>(
    x: ArrayView2<T>,
    y: ArrayView2<T>,
    points: &SpectralPoints<T>,
) -> Result<Array2<T>, Error> {
    let [phi_x, phi_y] = features_of_both(x, y, points)?;
    let scale = T::one() / points.normaliser();
    Ok(product(scale, mat(&phi_x), mat(&phi_y).t()))
}

/// The gradients of [`kernel_matrix`].
#[derive(Clone, Debug, PartialEq)]
pub struct KernelMatrixGradients<T> {
    /// Along the left inputs, `[Tx, d]`.
    pub x: Array2<T>,
    /// Along the right inputs, `[Ty, d]`.
    pub y: Array2<T>,
    /// Along the points.
    pub points: PointsGradients<T>,
}

/// The vector-Jacobian product of [`kernel_matrix`].
///
/// $$\dot\phi(x) = \dot f \phi(y) / c, \qquad \dot\phi(y) = \dot f^\top \phi(x) / c,$$
/// and from there by [`feature_map_vjp`]; the points take the sum of both sides.
///
/// # Shapes
/// `cotangent` is `[Tx, Ty]`. With `y = x` the whole gradient along `x` is the sum of the two.
///
/// # Errors
/// The errors of [`kernel_matrix`], and [`Error::Argument`] if `cotangent` does not fit.
pub fn kernel_matrix_vjp<T: Real>(
    x: ArrayView2<T>,
    y: ArrayView2<T>,
    points: &SpectralPoints<T>,
    cotangent: ArrayView2<T>,
) -> Result<KernelMatrixGradients<T>, Error> {
    let [phi_x, phi_y] = features_of_both(x, y, points)?;
    argument::shape("cotangent", &[x.nrows(), y.nrows()], cotangent.shape())?;
    let cotangent = cotangent.as_standard_layout().into_owned();
    let scale = T::one() / points.normaliser();
    let along_phi_x = product(scale, mat(&cotangent), mat(&phi_y));
    let along_phi_y = product(scale, mat(&cotangent).t(), mat(&phi_x));
    let buffers = Buffers::default();
    let mut left = feature_map_vjp(x, points, along_phi_x.view(), &buffers)?;
    let right = feature_map_vjp(y, points, along_phi_y.view(), &buffers)?;
    left.points.add(&right.points);
    Ok(KernelMatrixGradients {
        x: left.x,
        y: right.x,
        points: left.points,
    })
}

fn features_of_both<T: Real>(
    x: ArrayView2<T>,
    y: ArrayView2<T>,
    points: &SpectralPoints<T>,
) -> Result<[Array2<T>; 2], Error> {
    points.check()?;
    if x.ncols() == y.ncols() {
        // Where both inputs have one width, the points are what does not fit.
        points.check_width(x.ncols())?;
    }
    points.check_with("y", &y)?;
    let buffers = Buffers::default();
    let mut both = [x, y].map(|x| Array2::zeros((x.nrows(), points.features())));
    for (x, phi) in [x, y].into_iter().zip(&mut both) {
        feature_map(x, points, phi.view_mut(), &buffers)?;
    }
    Ok(both)
}
