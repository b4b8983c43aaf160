//! The prior of the noise.

use crate::Error;
use bochner_numerics::{Real, argument, standard_normal};
use ndarray::{Array, Array1, Array2, ArrayView1, ArrayView2, ShapeBuilder};
use rand::RngCore;
use std::f64::consts::TAU;

/// The prior $z \sim N(0, s_0^2 I)$ of the noise behind implicit spectral points.
///
/// # Example
/// ```
/// use bochner_numerics::Seed;
/// use bochner_spectral::Prior;
///
/// let prior = Prior { std: 0.1_f64 };
/// let z = prior.sample((100, 4), &mut Seed::new(1).stream("noise"))?;
/// assert_eq!(prior.log_density(z.view())?.len(), 100);
/// # Ok::<(), bochner_spectral::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prior<T> {
    /// The standard deviation $s_0$; positive.
    pub std: T,
}

impl<T: Real> Prior<T> {
    /// Independent draws in an array of any shape, `[B, M, R, d]` for a layer.
    ///
    /// # Errors
    /// [`Error::Argument`] if the standard deviation is not finite and positive.
    ///
    /// # Numerics
    /// Drawn in double precision and rounded, so that `f32` and `f64` see the same noise.
    pub fn sample<Sh: ShapeBuilder>(
        &self,
        shape: Sh,
        rng: &mut (impl RngCore + ?Sized),
    ) -> Result<Array<T, Sh::Dim>, Error> {
        let std = self.checked()?;
        let draw = || T::of(std * standard_normal::<f64>(rng));
        Ok(Array::from_shape_simple_fn(shape, draw))
    }

    /// The logarithm of the density of each row.
    ///
    /// $$\log p(z) = -\frac{|z|^2}{2 s_0^2} - \frac d2 \log(2 \pi s_0^2)$$
    ///
    /// # Shapes
    /// `z: [n, d]` to `[n]`.
    ///
    /// # Errors
    /// The errors of [`sample`](Self::sample).
    pub fn log_density(&self, z: ArrayView2<T>) -> Result<Array1<T>, Error> {
        let std = self.checked()?;
        let constant = z.ncols() as f64 * (0.5 * TAU.ln() + std.ln());
        let square = |z: ArrayView1<T>| z.iter().map(|z| (z.as_f64() / std).powi(2)).sum::<f64>();
        let rows = z.rows().into_iter();
        Ok(rows.map(|z| T::of(-0.5 * square(z) - constant)).collect())
    }

    /// The vector-Jacobian product of [`log_density`](Self::log_density), $\dot z = -c z / s_0^2$.
    ///
    /// # Shapes
    /// `cotangent` ($c$) is `[n]`, the result `[n, d]`.
    ///
    /// # Errors
    /// The errors of [`log_density`](Self::log_density), and [`Error::Argument`] if `cotangent` does not fit.
    pub fn log_density_vjp(
        &self,
        z: ArrayView2<T>,
        cotangent: ArrayView1<T>,
    ) -> Result<Array2<T>, Error> {
        let std = self.checked()?;
        argument::shape("cotangent", &[z.nrows()], cotangent.shape())?;
        Ok(Array2::from_shape_fn(z.dim(), |(i, n)| {
            // A cotangent of zero must not meet an infinity.
            let scaled = (z[[i, n]].as_f64() / std).clamp(f64::MIN, f64::MAX);
            T::of(-cotangent[i].as_f64() * scaled / std)
        }))
    }

    fn checked(&self) -> Result<f64, Error> {
        argument::positive("std", self.std)?;
        Ok(self.std.as_f64())
    }
}
