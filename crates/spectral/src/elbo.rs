//! The objective: likelihood against divergence.

use crate::Error;
use bochner_numerics::{Real, argument};
use ndarray::{Array1, ArrayView1};

/// The objective to maximise, per example.
///
/// $$\mathcal L = \log p(y \mid z, h) - \frac{\beta}{N} \mathrm{KL}$$
///
/// *where* $\beta$ is `beta` and $N$ is `n_train`, the number of training examples.
///
/// It has the form of an evidence lower bound, but only with $\beta \ge 1$ and without the
/// division is it one: here every example has its own latent variable, whose divergence counts in
/// full in the bound. With $\beta < 1$, and the divergence of a latent per example divided by $N$,
/// it is **not strictly a lower bound** on the log evidence; it is the practice of the method's
/// authors, a weak pull towards the prior.
///
/// # Shapes
/// `log_likelihood`, `kl` and the result are `[B]`.
///
/// # Errors
/// [`Error::Argument`] if the shapes do not fit, if `beta` is negative or not finite, or if `n_train`
/// is zero.
///
/// # Reference
/// Higgins et al., *beta-VAE*, 2017, for the weight of the divergence.
///
/// # Example
/// ```
/// use bochner_spectral::elbo;
/// use ndarray::array;
///
/// let objective = elbo(array![-1.0].view(), array![200.0].view(), 0.1, 100)?;
/// assert_eq!(objective, array![-1.2]);
/// # Ok::<(), bochner_spectral::Error>(())
/// ```
pub fn elbo<T: Real>(
    log_likelihood: ArrayView1<T>,
    kl: ArrayView1<T>,
    beta: T,
    n_train: usize,
) -> Result<Array1<T>, Error> {
    let weight = weight(beta, n_train)?;
    argument::shape("kl", log_likelihood.shape(), kl.shape())?;
    let examples = log_likelihood.iter().zip(kl);
    Ok(examples.map(|(&fit, &kl)| fit - weight * kl).collect())
}

/// The gradients of [`elbo`].
#[derive(Clone, Debug, PartialEq)]
pub struct ElboGradients<T> {
    /// Along the log likelihood, `[B]`.
    pub log_likelihood: Array1<T>,
    /// Along the divergence, `[B]`.
    pub kl: Array1<T>,
}

/// The vector-Jacobian product of [`elbo`]: the cotangent, and $-\beta/N$ times it.
///
/// # Shapes
/// `cotangent` is `[B]`.
///
/// # Errors
/// The errors of [`elbo`].
pub fn elbo_vjp<T: Real>(
    cotangent: ArrayView1<T>,
    beta: T,
    n_train: usize,
) -> Result<ElboGradients<T>, Error> {
    let weight = weight(beta, n_train)?;
    Ok(ElboGradients {
        log_likelihood: cotangent.to_owned(),
        kl: cotangent.mapv(|c| -weight * c),
    })
}

fn weight<T: Real>(beta: T, n_train: usize) -> Result<T, Error> {
    argument::non_negative("beta", beta)?;
    argument::at_least_one("n_train", n_train)?;
    Ok(T::of(beta.as_f64() / n_train as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::check::{assert_gradient, random};
    use ndarray::array;

    #[test]
    fn gradients_agree_with_finite_differences() {
        let [fit, kl, cotangent] = ["fit", "kl", "cotangent"].map(|name| random(4, name));
        let value = |fit: ArrayView1<f64>, kl: ArrayView1<f64>| {
            (elbo(fit, kl, 0.3, 7).unwrap() * &cotangent).sum()
        };
        let got = elbo_vjp(cotangent.view(), 0.3, 7).unwrap();
        assert_gradient(&got.log_likelihood, &fit, |fit| value(fit, kl.view()));
        assert_gradient(&got.kl, &kl, |kl| value(fit.view(), kl));
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        let (one, two) = (array![1.0], array![1.0, 2.0]);
        let named = |error: Error, name: &str| {
            assert!(error.to_string().starts_with(name), "{error}");
        };
        named(elbo(one.view(), two.view(), 0.1, 3).unwrap_err(), "`kl`");
        named(elbo(one.view(), one.view(), -0.1, 3).unwrap_err(), "`beta`");
        named(elbo_vjp(one.view(), 0.1, 0).unwrap_err(), "`n_train`");
    }
}
