//! Normal marginals under a Gaussian copula, as a function that can be trained through.

use crate::Error;
use crate::density::{ScoreGradients, over_whitened, turned, unit_rows};
use bochner_numerics::normal::ln_density;
use bochner_numerics::{Real, argument};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};

/// The logarithm of the joint density of normal marginals tied by a Gaussian copula.
///
/// $$\log p(z) = \log c(u) + \sum_m \log \mathcal N(z_m; \mu_m, \sigma_m^2), \qquad
///   \Phi^{-1}(u_m) = (z_m - \mu_m) / \sigma_m$$
///
/// For normal marginals the distribution functions and the quantiles cancel, so that nothing is
/// clamped. For any other marginals see [`Joint`](crate::Joint).
///
/// # Shapes
/// `z: [n, M]`, `mu` and `sigma`: `[M]`, `factor: [M, M]` to `[n]`.
///
/// # Errors
/// [`Error::Argument`] for shapes that do not fit together, a `z` or `mu` that is not finite or a `sigma` that is
/// not positive and finite, and those of [`normalise`](crate::normalise).
///
/// # Numerics
/// The computation is in double precision for either type.
///
/// # Example
///
/// ```
/// use bochner_copula::heads::normal_joint_log_density;
/// use bochner_copula::ndarray::{array, aview1};
///
/// let (z, factor) = (array![[1.0, 2.0]], array![[1.0, 0.0], [0.75, 1.0]]);
/// let (mu, sigma) = (aview1(&[1.0, 2.0]), aview1(&[1.0, 1.0]));
/// let value = normal_joint_log_density(z.view(), mu, sigma, factor.view())?;
/// assert!((value[0] + 0.8_f64.ln() + std::f64::consts::TAU.ln()).abs() < 1e-12);
/// # Ok::<(), bochner_copula::Error>(())
/// ```
pub fn normal_joint_log_density<T: Real>(
    z: ArrayView2<T>,
    mu: ArrayView1<T>,
    sigma: ArrayView1<T>,
    factor: ArrayView2<T>,
) -> Result<Array1<T>, Error> {
    let scores = standardised(z, mu, sigma, factor.nrows())?;
    let lh = unit_rows(factor)?;
    // The marginals' squares and those in the copula's density cancel.
    let white = |_, y| ln_density(y);
    let scores = |rows| turned(scores.view(), rows);
    let value = over_whitened(lh.view(), z.nrows(), scores, white);
    let scale: f64 = sigma.iter().map(|s| s.as_f64().ln()).sum();
    Ok((value - scale).mapv(T::of))
}

/// The gradients of [`normal_joint_log_density`].
#[derive(Clone, Debug, PartialEq)]
pub struct NormalJointGradients<T> {
    /// The gradient along `z`, `[n, M]`.
    pub z: Array2<T>,
    /// The gradient along `mu`, `[M]`.
    pub mu: Array1<T>,
    /// The gradient along `sigma`, `[M]`.
    pub sigma: Array1<T>,
    /// The gradient along `factor`, `[M, M]`, zero above the diagonal.
    pub factor: Array2<T>,
}

/// The vector-Jacobian product of [`normal_joint_log_density`].
///
/// $$\bar x_i = -g_i R^{-1} x_i, \qquad \bar z = \bar x / \sigma, \qquad
///   \bar \mu = -\sum_i \bar z_i, \qquad
///   \bar \sigma = -\sum_i (\bar x_i x_i + g_i) / \sigma$$
///
/// *where* $x = (z - \mu) / \sigma$, and the factor's gradient is that of the copula's density at
/// *x*.
///
/// # Shapes
/// The shapes of [`normal_joint_log_density`], and `cotangent` (*g*): `[n]`.
///
/// # Errors
/// The errors of [`normal_joint_log_density`].
pub fn normal_joint_log_density_vjp<T: Real>(
    z: ArrayView2<T>,
    mu: ArrayView1<T>,
    sigma: ArrayView1<T>,
    factor: ArrayView2<T>,
    cotangent: ArrayView1<T>,
) -> Result<NormalJointGradients<T>, Error> {
    let scores = standardised(z, mu, sigma, factor.nrows())?;
    let along = ScoreGradients::of(scores.view(), factor, cotangent)?;
    let g = cotangent.mapv(T::as_f64).insert_axis(Axis(1));
    let deviation = sigma.mapv(T::as_f64);
    // The sum of the copula's part and the marginals' is -g R^-1 x.
    let to_scores = along.scores - &scores * &g;
    let to_z = &to_scores / &deviation;
    let to_sigma = -((&to_scores * &scores + &g) / &deviation).sum_axis(Axis(0));
    Ok(NormalJointGradients {
        mu: to_z.sum_axis(Axis(0)).mapv(|x| T::of(-x)),
        z: to_z.mapv(T::of),
        sigma: to_sigma.mapv(T::of),
        factor: along.factor.mapv(T::of),
    })
}

/// `(z - mu) / sigma`.
fn standardised<T: Real>(
    z: ArrayView2<T>,
    mu: ArrayView1<T>,
    sigma: ArrayView1<T>,
    dimension: usize,
) -> Result<Array2<f64>, Error> {
    argument::shape("z", &[z.nrows(), dimension], z.shape())?;
    argument::shape("mu", &[dimension], mu.shape())?;
    argument::shape("sigma", &[dimension], sigma.shape())?;
    argument::finite("z", z.shape(), z)?;
    argument::finite("mu", mu.shape(), mu)?;
    for &sigma in sigma {
        argument::positive("sigma", sigma)?;
    }
    let centred = z.mapv(T::as_f64) - mu.mapv(T::as_f64);
    Ok(centred / sigma.mapv(T::as_f64))
}
