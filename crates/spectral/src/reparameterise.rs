//! Draws from the posterior as a differentiable function of its parameters.

use crate::Error;
use bochner_numerics::operations::record;
use bochner_numerics::scaling::bounded;
use bochner_numerics::{Operations, Real, argument};
use ndarray::{Array3, Array4, ArrayView3, ArrayView4, Axis};

/// Noise with the posterior's mean and standard deviation.
///
/// $$z_{bmr} = \mu_{bm} + \exp(\log\sigma_{bm}) \odot x_{bmr}$$
///
/// *where* $x$ has standard normal coordinates: independent ones, or correlated over the heads.
///
/// # Shapes
/// `mu` and `log_sigma` are `[B, M, d]`, `x` and the result `[B, M, R, d]`.
///
/// # Errors
/// [`Error::Argument`] if the shapes do not fit.
///
/// # Numerics
/// Finite arguments give no NaN, here and in the gradients: a standard deviation beyond the type's range
/// is its largest number, and so is a gradient.
///
/// # Reference
/// Kingma and Welling, *Auto-encoding variational Bayes*, 2014.
///
/// # Example
/// ```
/// use bochner_spectral::reparameterise;
/// use bochner_spectral::ndarray::array;
///
/// let (mu, log_sigma) = (array![[[1.0_f64]]], array![[[2.0_f64.ln()]]]);
/// let z = reparameterise(mu.view(), log_sigma.view(), array![[[[0.5], [-1.0]]]].view())?;
/// assert!((z[[0, 0, 0, 0]] - 2.0).abs() < 1e-12 && (z[[0, 0, 1, 0]] + 1.0).abs() < 1e-12);
/// # Ok::<(), bochner_spectral::Error>(())
/// ```
pub fn reparameterise<T: Real>(
    mu: ArrayView3<T>,
    log_sigma: ArrayView3<T>,
    x: ArrayView4<T>,
) -> Result<Array4<T>, Error> {
    check(mu, log_sigma, x)?;
    record(Operations::multiply_adds(x.len()) + Operations::exponentials(log_sigma.len()));
    let sigma = deviation(log_sigma);
    let mut z = &x * &sigma;
    z += &mu.insert_axis(Axis(2));
    Ok(z)
}

/// The gradients of [`reparameterise`].
#[derive(Clone, Debug, PartialEq)]
pub struct ReparameteriseGradients<T> {
    /// Along the mean, `[B, M, d]`.
    pub mu: Array3<T>,
    /// Along the logarithm of the standard deviation, `[B, M, d]`.
    pub log_sigma: Array3<T>,
    /// Along the standard normal draws, `[B, M, R, d]`.
    pub x: Array4<T>,
}

/// The vector-Jacobian product of [`reparameterise`].
///
/// $$\dot\mu = \sum_r \dot z_r, \qquad \dot{\log\sigma} = \sum_r \dot z_r \odot \sigma \odot x_r,
/// \qquad \dot x_r = \sigma \odot \dot z_r$$
///
/// # Shapes
/// `cotangent` is `[B, M, R, d]`.
///
/// # Errors
/// The errors of [`reparameterise`], and [`Error::Argument`] if `cotangent` does not fit.
pub fn reparameterise_vjp<T: Real>(
    mu: ArrayView3<T>,
    log_sigma: ArrayView3<T>,
    x: ArrayView4<T>,
    cotangent: ArrayView4<T>,
) -> Result<ReparameteriseGradients<T>, Error> {
    check(mu, log_sigma, x)?;
    argument::shape("cotangent", x.shape(), cotangent.shape())?;
    let sigma = deviation(log_sigma);
    let along_x = (&cotangent * &sigma).mapv_into(bounded);
    let sum_of_draws = |terms: ArrayView4<T>| {
        terms.fold_axis(Axis(2), T::zero(), |&sum, &x| bounded(sum + bounded(x)))
    };
    Ok(ReparameteriseGradients {
        mu: sum_of_draws(cotangent),
        log_sigma: sum_of_draws((&along_x * &x).view()),
        x: along_x,
    })
}

/// The standard deviations, `[B, M, 1, d]`.
fn deviation<T: Real>(log_sigma: ArrayView3<T>) -> Array4<T> {
    log_sigma.mapv(|x| bounded(x.exp())).insert_axis(Axis(2))
}

fn check<T: Real>(
    mu: ArrayView3<T>,
    log_sigma: ArrayView3<T>,
    x: ArrayView4<T>,
) -> Result<(), Error> {
    let (batch, heads, width) = mu.dim();
    argument::shape("log_sigma", mu.shape(), log_sigma.shape())?;
    argument::shape("x", &[batch, heads, x.dim().2, width], x.shape())?;
    Ok(())
}
