//! A stationary kernel by draws of its frequencies.

use super::Stationary;
use crate::Error;
use crate::features::{SpectralPoints, kernel_matrix};
use bochner_numerics::Real;
use ndarray::{Array2, ArrayView2};
use rand::RngCore;

/// Frequencies drawn from a kernel's spectral density, with the factor of the mean over them.
///
/// $$k(x, y) \approx v \cdot \frac1R \sum_r \cos w_r \cdot (x - y)$$
#[derive(Clone, Debug, PartialEq)]
pub struct RandomFrequencies<T> {
    /// The frequencies, `[R, d]`.
    pub w: Array2<T>,
    /// $v = k(x, x)$.
    pub variance: T,
}

impl<T: Real> RandomFrequencies<T> {
    /// The frequencies as the points of a feature map.
    pub fn points(&self) -> SpectralPoints<'_, T> {
        SpectralPoints::Stationary { w: self.w.view() }
    }

    /// The approximate Gram matrix, `[N, N']`.
    ///
    /// # Errors
    /// The errors of [`kernel_matrix`].
    pub fn gram(&self, x: ArrayView2<T>, y: ArrayView2<T>) -> Result<Array2<T>, Error> {
        Ok(kernel_matrix(x, y, &self.points())?.mapv_into(|f| self.variance * f))
    }
}

/// Draws `count` frequencies for a kernel on $\mathbb{R}^d$, for `width` $d$, independently.
///
/// # Errors
/// [`Error::Argument`] if `count` or `width` is zero, or if the kernel's
/// parameters are for another width.
///
/// # Numerics
/// The error of the Gram matrix has mean zero and falls like $1 / \sqrt R$; [`UniformBound`](crate::UniformBound)
/// bounds it everywhere on a set.
///
/// # Reference
/// Rahimi, Recht, *Random Features for Large-Scale Kernel Machines*, NIPS 2007.
///
/// # Example
/// ```
/// use bochner_kernels::{Kernel, Lengthscale, MaternConfig, Smoothness, random_frequencies};
/// use bochner_numerics::Seed;
/// use bochner_kernels::ndarray::array;
///
/// let lengthscale = Lengthscale::Shared(1.0_f64);
/// let kernel = MaternConfig { smoothness: Smoothness::FiveHalves, lengthscale }.build()?;
/// let mut stream = Seed::new(2021).stream("frequencies");
/// let frequencies = random_frequencies(&kernel, 2, 4096, &mut stream)?;
/// let (x, y) = (array![[0.0, 0.0]], array![[1.0, 0.5], [3.0, -1.0]]);
/// let error = frequencies.gram(x.view(), y.view())? - kernel.gram(x.view(), y.view())?;
/// assert!(error.iter().all(|e| e.abs() < 0.05));
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
pub fn random_frequencies<T: Real>(
    kernel: &dyn Stationary<T>,
    width: usize,
    count: usize,
    rng: &mut (impl RngCore + ?Sized),
) -> Result<RandomFrequencies<T>, Error> {
    Ok(RandomFrequencies {
        w: kernel.density(width)?.sample(count, &mut &mut *rng)?,
        variance: kernel.variance(),
    })
}
