//! The logarithm of the marginal likelihood, and its gradient.

use crate::{Error, GaussianProcess, gram};
use bochner_dense::Cholesky;
use bochner_kernels::{Domain, Kernel};
use bochner_numerics::{ArgumentError, argument};
use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2};
use std::f64::consts::TAU;

/// The logarithm of the marginal likelihood of observations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evidence {
    /// $\ln p(y \mid x)$.
    pub log_likelihood: f64,
    /// The jitter that was added to the noise.
    pub jitter: f64,
    /// The number of observations.
    pub observations: usize,
}

/// The [`Evidence`] with its gradient.
#[derive(Clone, Debug, PartialEq)]
pub struct EvidenceGradient {
    /// The evidence.
    pub evidence: Evidence,
    /// The derivatives along the hyper-parameters, in the order of [`GaussianProcess::parameters`].
    pub parameters: Vec<f64>,
    /// The derivatives along the [`GaussianProcess::coordinates`]: $\theta \partial / \partial
    /// \theta$ for parameters that must be positive.
    pub coordinates: Vec<f64>,
}

impl GaussianProcess {
    /// The logarithm of the marginal likelihood.
    ///
    /// $$\ln p(y \mid x) = -\frac12 r^\top A^{-1} r - \frac12 \ln \det A - \frac n2 \ln 2 \pi,
    /// \qquad A = K + (\sigma^2 + j) I + \operatorname{diag}(v), \quad r = y - m$$
    ///
    /// *where* $K$ is the Gram matrix of `x`, $j$ the jitter and $v$ the known variances of the observations.
    ///
    /// # Shapes
    /// `x: [n, d]`, `y: [n]`. Without observations the likelihood is one.
    ///
    /// # Errors
    /// [`Error::Argument`] for data of other shapes, that are not finite, too large to be squared, or of another
    /// number than the process's `observation_noise`; [`Error::Kernel`] if the kernel is not positive semi-definite on inputs of this width;
    /// [`Error::Covariance`] and [`Error::NotPositiveDefinite`] if the covariance matrix has no factor.
    ///
    /// # Numerics
    /// $O(n^3)$ time and $O(n^2)$ memory.
    ///
    /// # Reference
    /// Rasmussen, Williams, 2006, equation 2.30.
    pub fn evidence(&self, x: ArrayView2<f64>, y: ArrayView1<f64>) -> Result<Evidence, Error> {
        Ok(self.observe(x, y)?.evidence())
    }

    /// The [`evidence`](Self::evidence) with its gradient along all hyper-parameters.
    ///
    /// $$\frac{\partial \ln p}{\partial K} = \frac12 (\alpha \alpha^\top - A^{-1}), \qquad
    /// \frac{\partial \ln p}{\partial \sigma^2} = \operatorname{tr} \frac{\partial \ln p}
    /// {\partial K}, \qquad \frac{\partial \ln p}{\partial m} = \sum_i \alpha_i, \qquad
    /// \alpha = A^{-1} r$$
    ///
    /// The kernel's own vector-Jacobian product carries the first one to its parameters. The
    /// jitter counts as a constant, also where it escalates.
    ///
    /// # Errors
    /// The errors of [`evidence`](Self::evidence).
    ///
    /// # Reference
    /// Rasmussen, Williams, 2006, equation 5.9.
    pub fn evidence_gradient(
        &self,
        x: ArrayView2<f64>,
        y: ArrayView1<f64>,
    ) -> Result<EvidenceGradient, Error> {
        self.observe(x, y)?.gradient(self, x)
    }

    /// Factorises the covariance matrix of the observations and solves for them.
    pub(crate) fn observe(
        &self,
        x: ArrayView2<f64>,
        y: ArrayView1<f64>,
    ) -> Result<Observed, Error> {
        self.check_observations(x, y)?;
        let mut gram = gram::gram(&self.kernel, x)?;
        for (entry, variance) in gram
            .diag_mut()
            .iter_mut()
            .zip(self.observation_noise.iter().flatten())
        {
            *entry += variance;
        }
        let (factor, jitter) = self.jitter.factorise(gram.view(), self.noise)?;
        let residuals: Vec<f64> = y.iter().map(|y| y - self.mean).collect();
        let mut alpha = residuals.clone();
        let row = ArrayViewMut2::from_shape((1, y.len()), &mut alpha);
        factor.solve(row.expect("one row of n entries"))?;
        let misfit: f64 = residuals.iter().zip(&alpha).map(|(r, a)| r * a).sum();
        let allowed = "finite: scale `y` down, or give the process more noise";
        argument::in_range(misfit.is_finite(), "the misfit of y", misfit, allowed)?;
        Ok(Observed {
            factor,
            jitter,
            residuals,
            alpha,
            misfit,
        })
    }
}

impl GaussianProcess {
    /// Refuses observations that the process cannot be conditioned on.
    pub(crate) fn check_observations(
        &self,
        x: ArrayView2<f64>,
        y: ArrayView1<f64>,
    ) -> Result<(), Error> {
        check_data(x, y)?;
        if let Some(variances) = &self.observation_noise {
            argument::shape("observation_noise", &[y.len()], &[variances.len()])?;
        }
        Ok(self.kernel.check_positive_semi_definite(x.ncols())?)
    }

    /// The gradient along the coordinates from that along the parameters.
    pub(crate) fn along_coordinates(&self, parameters: &[f64]) -> Vec<f64> {
        let own = self.parameters();
        let each = own.iter().zip(parameters);
        each.map(|(p, g)| match p.domain {
            Domain::Positive => p.value * g,
            Domain::Finite | Domain::Frequency { .. } => *g,
        })
        .collect()
    }
}

/// Refuses data whose targets and inputs do not fit together or are not finite.
pub(crate) fn check_data(x: ArrayView2<f64>, y: ArrayView1<f64>) -> Result<(), ArgumentError> {
    argument::shape("y", &[x.nrows()], y.shape())?;
    check_inputs(x)?;
    argument::finite("y", y.shape(), y)
}

/// Refuses inputs without columns or that are not finite.
pub(crate) fn check_inputs(x: ArrayView2<f64>) -> Result<(), ArgumentError> {
    argument::at_least_one("the number of columns of x", x.ncols())?;
    argument::finite("x", x.shape(), x)
}

/// Observations, solved for.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    /// The factor of $A$.
    pub(crate) factor: Cholesky,
    /// The jitter in $A$.
    pub(crate) jitter: f64,
    /// $r$.
    pub(crate) residuals: Vec<f64>,
    /// $A^{-1} r$.
    pub(crate) alpha: Vec<f64>,
    /// $r^\top A^{-1} r$.
    misfit: f64,
}

impl Observed {
    pub(crate) fn evidence(&self) -> Evidence {
        let constant = self.alpha.len() as f64 * TAU.ln();
        Evidence {
            log_likelihood: -0.5 * (self.misfit + self.factor.log_determinant() + constant),
            jitter: self.jitter,
            observations: self.alpha.len(),
        }
    }

    /// The gradient of the evidence of a process that has been observed at `x`.
    pub(crate) fn gradient(
        &self,
        process: &GaussianProcess,
        x: ArrayView2<f64>,
    ) -> Result<EvidenceGradient, Error> {
        let along_gram = self.along_gram();
        let along_noise = along_gram.diag().sum();
        let mut parameters = vec![self.alpha.iter().sum(), along_noise];
        parameters.extend(gram::gram_vjp(&process.kernel, x, along_gram.view())?);
        Ok(EvidenceGradient {
            evidence: self.evidence(),
            coordinates: process.along_coordinates(&parameters),
            parameters,
        })
    }

    /// The change of the constant mean that maximises the evidence,
    /// $1^\top A^{-1} r / 1^\top A^{-1} 1$ (generalised least squares).
    pub(crate) fn mean_shift(&self) -> Result<f64, Error> {
        let mut ones = Array2::ones((1, self.alpha.len()));
        self.factor.solve(ones.view_mut())?;
        Ok(self.alpha.iter().sum::<f64>() / ones.sum())
    }

    fn along_gram(&self) -> Array2<f64> {
        let alpha = &self.alpha;
        let mut along = self.factor.inverse();
        for ((i, j), entry) in along.indexed_iter_mut() {
            *entry = 0.5 * (alpha[i] * alpha[j] - *entry);
        }
        along
    }
}
