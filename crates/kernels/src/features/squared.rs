//! The square of the kernel that the features give: a similarity that is never negative.

use super::{KernelMatrixGradients, SpectralPoints, kernel_matrix, kernel_matrix_vjp};
use crate::Error;
use bochner_numerics::Real;
use bochner_numerics::argument;
use ndarray::{Array2, ArrayView2, Zip};

/// The squared kernel between every row of `x` and every row of `y`.
///
/// $$f(x, y)^2 = \bigl(\phi(x) \cdot \phi(y) / c\bigr)^2$$
///
/// The product of a kernel with itself is a kernel, and can be normalised into weights, which
/// averages of cosines cannot. Where $f$ goes to an RBF kernel, $f^2$ goes to another, whose
/// lengthscale is shorter by $\sqrt2$ (Proposition 3; see
/// [`squared_rbf_density`](crate::squared_rbf_density)).
///
/// # Shapes
/// `x` is `[Tx, d]`, `y` is `[Ty, d]`, the result `[Tx, Ty]`.
///
/// # Errors
/// The errors of [`kernel_matrix`].
///
/// # Numerics
/// The values lie between 0 and 1 up to rounding; they take the time of [`kernel_matrix`].
///
/// # Reference
/// Song, Jung, Kim, Moon, *Implicit Kernel Attention*, AAAI 2021, equations 13 and 16.
///
/// # Example
/// ```
/// use bochner_kernels::{Lengthscale, RbfConfig, SpectralDensity, SpectralPoints};
/// use bochner_kernels::{Kernel, squared_kernel_matrix, squared_rbf_density};
/// use bochner_numerics::Seed;
/// use bochner_kernels::ndarray::array;
///
/// let kernel = RbfConfig { lengthscale: Lengthscale::Shared(0.8_f64) }.build()?;
/// let mut stream = Seed::new(3).stream("frequencies");
/// let w = squared_rbf_density(&kernel, 2)?.sample(10_000, &mut stream)?;
/// let (x, y) = (array![[0.5, -0.2]], array![[0.1, 0.6]]);
/// let points = SpectralPoints::Stationary { w: w.view() };
/// let squared = squared_kernel_matrix(x.view(), y.view(), &points)?;
/// assert!((squared[[0, 0]] - kernel.value(x.row(0), y.row(0))?).abs() < 0.05);
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
pub fn squared_kernel_matrix<T: Real>(
    x: ArrayView2<T>,
    y: ArrayView2<T>,
    points: &SpectralPoints<T>,
) -> Result<Array2<T>, Error> {
    Ok(kernel_matrix(x, y, points)?.mapv_into(|f| f * f))
}

/// The vector-Jacobian product of [`squared_kernel_matrix`]: that of [`kernel_matrix`] for the
/// cotangent times $2 f$.
///
/// # Shapes
/// `cotangent` is `[Tx, Ty]`.
///
/// # Errors
/// The errors of [`kernel_matrix`], and [`Error::Argument`] if `cotangent` does not fit.
pub fn squared_kernel_matrix_vjp<T: Real>(
    x: ArrayView2<T>,
    y: ArrayView2<T>,
    points: &SpectralPoints<T>,
    cotangent: ArrayView2<T>,
) -> Result<KernelMatrixGradients<T>, Error> {
    let mut along_f = kernel_matrix(x, y, points)?;
    argument::shape("cotangent", &[x.nrows(), y.nrows()], cotangent.shape())?;
    Zip::from(&mut along_f)
        .and(cotangent)
        .for_each(|f, &g| *f *= T::of(2.0) * g);
    kernel_matrix_vjp(x, y, points, along_f.view())
}
