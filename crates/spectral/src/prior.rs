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

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::Seed;
    use bochner_numerics::check::{assert_gradient, random};
    use ndarray::array;

    #[test]
    fn draws_have_the_standard_deviation() {
        let mut stream = Seed::new(1).stream("noise");
        let z = Prior { std: 0.1 }.sample((50, 4, 25, 2), &mut stream);
        let variance = z.unwrap().mapv(|z: f64| z * z).mean().unwrap();
        assert!((variance - 0.01).abs() < 5e-4);
    }

    #[test]
    fn the_density_integrates_to_one_and_its_gradient_agrees() {
        let prior = Prior { std: 0.3 };
        let grid = Array2::from_shape_fn((1201, 1), |(i, _)| (i as f64 - 600.0) * 0.005);
        let mass = prior.log_density(grid.view()).unwrap().mapv(f64::exp).sum() * 0.005;
        assert!((mass - 1.0).abs() < 1e-12);

        let z: Array2<f64> = random((3, 2), "z");
        let cotangent = array![0.7, -1.3, 2.0];
        let got = prior.log_density_vjp(z.view(), cotangent.view()).unwrap();
        assert_gradient(&got, &z, |z| prior.log_density(z).unwrap().dot(&cotangent));
    }

    #[test]
    fn a_prior_without_width_is_refused() {
        let flat = Prior { std: 0.0 };
        let z = array![[0.0]];
        let error = flat.log_density(z.view()).unwrap_err();
        assert!(error.to_string().starts_with("`std` is 0"), "{error}");
    }

    #[test]
    fn finite_arguments_give_no_nan() {
        let (prior, z) = (Prior { std: 1e-10 }, array![[1e300, 0.0]]);
        assert_eq!(prior.log_density(z.view()).unwrap()[0], f64::NEG_INFINITY);
        let g = prior.log_density_vjp(z.view(), array![0.0].view()).unwrap();
        assert_eq!(g, array![[0.0, 0.0]]);
    }
}
