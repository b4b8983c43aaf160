//! The normal distribution of several values, and draws from it.

use crate::{Error, Jitter};
use bochner_numerics::{Mat, MatMut, argument, matmul, standard_normal};
use ndarray::{Array1, Array2};
use rand::RngCore;

/// The normal distribution of several values, as [`GaussianProcess::prior`] and
/// [`Posterior::joint`](crate::Posterior::joint) return it.
///
/// [`GaussianProcess::prior`]: crate::GaussianProcess::prior
#[derive(Clone, Debug, PartialEq)]
pub struct MultivariateNormal {
    /// The mean, `[m]`.
    pub mean: Array1<f64>,
    /// The covariance, `[m, m]`, symmetric and positive semi-definite up to rounding.
    pub covariance: Array2<f64>,
}

/// Draws of several values at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Draws {
    /// One draw for each row, `[count, m]`.
    pub values: Array2<f64>,
    /// The jitter that was added to the variances.
    pub jitter: f64,
}

impl MultivariateNormal {
    /// Independent draws, $\mu + L z$ with $L L^\top = \Sigma + j I$.
    ///
    /// Up to rounding, the covariance of a smooth function at many inputs is singular, and so is the
    /// covariance of a posterior at inputs that were observed without noise: such draws need some jitter.
    /// With the noise as [`Jitter::Fixed`] the draws are observations instead of the function's values.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] if no jitter suffices; [`Error::Argument`] for a jitter outside
    /// its range, for a mean that is not finite, or if mean and covariance do not fit together;
    /// [`Error::Covariance`] if an entry of the covariance is not finite.
    ///
    /// # Numerics
    /// $O(m^3)$ time, and $O(m^2)$ for each draw.
    ///
    /// # Example
    /// ```
    /// use bochner_gp::ndarray::array;
    /// use bochner_gp::{Jitter, MultivariateNormal};
    /// use bochner_numerics::Seed;
    ///
    /// let joint = MultivariateNormal {
    ///     mean: array![1.0, 2.0],
    ///     covariance: array![[1.0, 1.0], [1.0, 1.0]],
    /// };
    /// let jitter = Jitter::Escalating { first: 1e-14, last: 1e-9 };
    /// let draws = joint.sample(3, jitter, &mut Seed::new(1).stream("draws"))?;
    /// assert_eq!(draws.values.dim(), (3, 2));
    /// for draw in draws.values.rows() {
    ///     assert!((draw[1] - draw[0] - 1.0).abs() < 1e-3);
    /// }
    /// # Ok::<(), bochner_gp::Error>(())
    /// ```
    pub fn sample(
        &self,
        count: usize,
        jitter: Jitter,
        rng: &mut (impl RngCore + ?Sized),
    ) -> Result<Draws, Error> {
        jitter.check()?;
        let m = self.mean.len();
        argument::finite("mean", &[m], &self.mean)?;
        argument::shape("covariance", &[m, m], self.covariance.shape())?;
        let (factor, jitter) = jitter.factorise(self.covariance.view(), 0.0)?;
        let upper = factor.lower().reversed_axes();
        let upper = upper.to_slice().expect("L stands column by column");
        let z: Vec<f64> = (0..count * m).map(|_| standard_normal(rng)).collect();
        let mut values = Array2::zeros((count, m));
        values += &self.mean;
        let out = values.as_slice_mut().expect("allocated in row-major order");
        let out = MatMut::new(out, count, m);
        matmul(1.0, Mat::new(&z, count, m), Mat::new(upper, m, m), 1.0, out);
        Ok(Draws { values, jitter })
    }
}
