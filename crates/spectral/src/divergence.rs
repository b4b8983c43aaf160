//! The divergence of the mean-field posterior from the prior.

use crate::Error;
use bochner_numerics::{Real, argument};
use ndarray::{Array1, Array3, ArrayView1, ArrayView3, Axis};

/// The Kullback-Leibler divergence of independent normal posteriors from the prior, per example.
///
/// $$\mathrm{KL} = \sum_{m,l} \left( \log\frac{s_0}{\sigma_{ml}} +
/// \frac{\sigma_{ml}^2 + \mu_{ml}^2}{2 s_0^2} - \frac12 \right)$$
///
/// *where* $s_0$ is `prior_std`, the prior being $N(0, s_0^2 I)$.
///
/// It is the divergence of *one* draw of the noise: the $R$ spectral points of a head share their
/// posterior, and it is not multiplied by $R$. A copula over the heads adds the divergence of its
/// dependence to this one.
///
/// An objective that adds $\beta / N$ times the divergence to the mean loss of $N$ training examples, as the
/// method's authors do, is not strictly a bound on the evidence: there each example's divergence counts in
/// full. It is a weak pull towards the prior.
///
/// # Shapes
/// `mu` and `log_sigma` are `[B, M, d]`, the result `[B]`.
///
/// # Errors
/// [`Error::Argument`] if the shapes do not fit, or if `prior_std` lies outside $10^{-150}$ to
/// $10^{150}$, which leaves its square a margin to the ends of double precision.
///
/// # Numerics
/// Computed in double precision from $t = \log\sigma - \log s_0$ as $\frac12 (e^{2t} - 1) - t$ and
/// rounded once, so that it stays exact where the posterior is close to the prior. Finite arguments
/// give no NaN; a divergence beyond the type's range is infinite.
///
/// # Reference
/// Kingma, Welling, *Auto-encoding variational Bayes*, 2014, appendix B.
///
/// # Example
/// ```
/// use bochner_spectral::kl_mean_field;
/// use bochner_spectral::ndarray::array;
///
/// let log_sigma = array![[[0.1_f64.ln()]], [[0.1_f64.ln()]]];
/// let kl = kl_mean_field(array![[[0.0]], [[0.2]]].view(), log_sigma.view(), 0.1)?;
/// assert!(kl[0].abs() < 1e-12 && (kl[1] - 2.0).abs() < 1e-12);
/// # Ok::<(), bochner_spectral::Error>(())
/// ```
pub fn kl_mean_field<T: Real>(
    mu: ArrayView3<T>,
    log_sigma: ArrayView3<T>,
    prior_std: T,
) -> Result<Array1<T>, Error> {
    let terms = Terms::new(mu, log_sigma, prior_std)?;
    let examples = mu.axis_iter(Axis(0)).zip(log_sigma.axis_iter(Axis(0)));
    Ok(examples
        .map(|(mu, log_sigma)| {
            let pairs = mu.iter().zip(log_sigma.iter());
            T::of(pairs.map(|(&mu, &log_sigma)| terms.kl(mu, log_sigma)).sum())
        })
        .collect())
}

/// The gradients of [`kl_mean_field`].
#[derive(Clone, Debug, PartialEq)]
pub struct KlGradients<T> {
    /// Along the mean, `[B, M, d]`.
    pub mu: Array3<T>,
    /// Along the logarithm of the standard deviation, `[B, M, d]`.
    pub log_sigma: Array3<T>,
}

/// The vector-Jacobian product of [`kl_mean_field`].
///
/// $$\dot\mu = c \mu / s_0^2, \qquad \dot{\log\sigma} = c (\sigma^2 / s_0^2 - 1)$$
///
/// *where* $c$ is the example's cotangent.
///
/// # Shapes
/// `cotangent` is `[B]`.
///
/// # Errors
/// The errors of [`kl_mean_field`], and [`Error::Argument`] if `cotangent` does not fit.
pub fn kl_mean_field_vjp<T: Real>(
    mu: ArrayView3<T>,
    log_sigma: ArrayView3<T>,
    prior_std: T,
    cotangent: ArrayView1<T>,
) -> Result<KlGradients<T>, Error> {
    let terms = Terms::new(mu, log_sigma, prior_std)?;
    argument::shape("cotangent", &[mu.dim().0], cotangent.shape())?;
    let scale = |b: usize| cotangent[b].as_f64();
    Ok(KlGradients {
        mu: Array3::from_shape_fn(mu.dim(), |(b, m, l)| {
            T::of(scale(b) * mu[[b, m, l]].as_f64() / terms.variance)
        }),
        log_sigma: Array3::from_shape_fn(mu.dim(), |(b, m, l)| {
            // A cotangent of zero must not meet an infinity.
            let slope = (2.0 * terms.log_ratio(log_sigma[[b, m, l]])).exp_m1();
            T::of(scale(b) * slope.min(f64::MAX))
        }),
    })
}

/// The terms of the sum, for a given prior.
struct Terms {
    log_std: f64,
    variance: f64,
}

impl Terms {
    fn new<T: Real>(
        mu: ArrayView3<T>,
        log_sigma: ArrayView3<T>,
        prior_std: T,
    ) -> Result<Self, Error> {
        argument::shape("log_sigma", mu.shape(), log_sigma.shape())?;
        let std = prior_std.as_f64();
        let allowed = "from 1e-150 to 1e150";
        argument::in_range((1e-150..=1e150).contains(&std), "prior_std", std, allowed)?;
        Ok(Self {
            log_std: std.ln(),
            variance: std * std,
        })
    }

    /// $\log(\sigma / s_0)$.
    fn log_ratio<T: Real>(&self, log_sigma: T) -> f64 {
        log_sigma.as_f64() - self.log_std
    }

    fn kl<T: Real>(&self, mu: T, log_sigma: T) -> f64 {
        let (mu, t) = (mu.as_f64(), self.log_ratio(log_sigma));
        0.5 * ((2.0 * t).exp_m1() + mu * mu / self.variance) - t
    }
}
