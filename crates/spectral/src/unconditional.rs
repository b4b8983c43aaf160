//! The posterior that sees nothing: its mean and standard deviation are parameters.

use crate::Error;
use bochner_numerics::{Real, argument};
use ndarray::{Array2, Array3, ArrayView2, ArrayView3, Axis, Zip};

/// The posterior $q(z) = N(\mu, \operatorname{diag} \sigma^2)$, the same for every example.
///
/// The [`InferenceNetwork`](crate::InferenceNetwork) reads the mean of the whole sequence; under a
/// causal mask over that same sequence it would show every position its future. This posterior
/// reads nothing, so that it can stand there, and anywhere else.
///
/// The paper has no answer to a causal mask, and no such posterior. Being the same for every example, it
/// learns one kernel for each head, as direct points do, and keeps its divergence.
///
/// # Shapes
/// `mu` and `log_sigma` are `[M, d]`.
///
/// # Example
/// ```
/// use bochner_spectral::{UnconditionalPosterior, kl_mean_field, unconditional_init};
///
/// let (mu, log_sigma) = unconditional_init(4, 8, 0.1_f64)?;
/// let posterior = UnconditionalPosterior { mu: mu.view(), log_sigma: log_sigma.view() };
/// let shared = posterior.infer(32)?;
/// assert_eq!(shared.mu.dim(), (32, 4, 8));
/// let kl = kl_mean_field(shared.mu.view(), shared.log_sigma.view(), 0.1)?;
/// assert!(kl.iter().all(|kl| kl.abs() < 1e-12)); // it starts at the prior
/// # Ok::<(), bochner_spectral::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct UnconditionalPosterior<'a, T> {
    /// The mean.
    pub mu: ArrayView2<'a, T>,
    /// The logarithm of the standard deviation.
    pub log_sigma: ArrayView2<'a, T>,
}

/// A posterior of independent normals for each head of each example.
#[derive(Clone, Debug, PartialEq)]
pub struct MeanField<T> {
    /// The mean, `[B, M, d]`.
    pub mu: Array3<T>,
    /// The logarithm of the standard deviation, `[B, M, d]`.
    pub log_sigma: Array3<T>,
}

/// The gradients of [`UnconditionalPosterior::infer`], each `[M, d]`.
#[derive(Clone, Debug, PartialEq)]
pub struct UnconditionalGradients<T> {
    /// Along the mean.
    pub mu: Array2<T>,
    /// Along the logarithm of the standard deviation.
    pub log_sigma: Array2<T>,
}

impl<T: Real> UnconditionalPosterior<'_, T> {
    /// The posterior of `batch` examples: as many copies of the one there is.
    ///
    /// # Shapes
    /// `mu` and `log_sigma` of the result are `[batch, M, d]`, as [`kl_mean_field`](crate::kl_mean_field())
    /// and [`reparameterise`](crate::reparameterise()) take them.
    ///
    /// # Errors
    /// [`Error::Argument`] if `log_sigma` does not fit `mu`, or without heads or width.
    pub fn infer(&self, batch: usize) -> Result<MeanField<T>, Error> {
        let (heads, width) = self.check()?;
        let copies = |x: ArrayView2<T>| {
            let copies = x.broadcast((batch, heads, width));
            copies.expect("an axis is put in front").to_owned()
        };
        Ok(MeanField {
            mu: copies(self.mu),
            log_sigma: copies(self.log_sigma),
        })
    }

    /// The vector-Jacobian product of [`infer`](Self::infer): sums over the examples.
    ///
    /// # Shapes
    /// `mu` and `log_sigma` are the cotangents, `[B, M, d]`.
    ///
    /// # Errors
    /// The errors of [`infer`](Self::infer), and [`Error::Argument`] if a cotangent does not fit.
    ///
    /// # Numerics
    /// Summed in double precision, in the order of the examples.
    pub fn infer_vjp(
        &self,
        mu: ArrayView3<T>,
        log_sigma: ArrayView3<T>,
    ) -> Result<UnconditionalGradients<T>, Error> {
        let (heads, width) = self.check()?;
        let shape = [mu.dim().0, heads, width];
        argument::shape("cotangent of mu", &shape, mu.shape())?;
        argument::shape("cotangent of log_sigma", &shape, log_sigma.shape())?;
        Ok(UnconditionalGradients {
            mu: sum_over_examples(mu),
            log_sigma: sum_over_examples(log_sigma),
        })
    }

    fn check(&self) -> Result<(usize, usize), Error> {
        let (heads, width) = self.mu.dim();
        argument::at_least_one("heads", heads)?;
        argument::at_least_one("width", width)?;
        argument::shape("log_sigma", &[heads, width], self.log_sigma.shape())?;
        Ok((heads, width))
    }
}

/// Returns the initial values of an [`UnconditionalPosterior`]: the prior, $\mu = 0$ and $\sigma = s_0$.
///
/// # Shapes
/// The two arrays are `[heads, width]`.
///
/// # Errors
/// [`Error::Argument`] if one of the two counts is zero, or if `prior_std` is not finite and positive.
pub fn unconditional_init<T: Real>(
    heads: usize,
    width: usize,
    prior_std: T,
) -> Result<(Array2<T>, Array2<T>), Error> {
    argument::at_least_one("heads", heads)?;
    argument::at_least_one("width", width)?;
    argument::positive("prior_std", prior_std)?;
    let mu = Array2::zeros((heads, width));
    Ok((mu, Array2::from_elem((heads, width), prior_std.ln())))
}

fn sum_over_examples<T: Real>(x: ArrayView3<T>) -> Array2<T> {
    let (_, heads, width) = x.dim();
    let mut sum = Array2::zeros((heads, width));
    for example in x.axis_iter(Axis(0)) {
        Zip::from(&mut sum)
            .and(example)
            .for_each(|sum, x| *sum += x.as_f64());
    }
    sum.mapv(T::of)
}
