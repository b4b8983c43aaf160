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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Jitter;
    use crate::testing::{kernels, process, scaled_rbf};
    use bochner_kernels::{ExpsinConfig, Lengthscale};
    use bochner_numerics::check::random;
    use bochner_numerics::{finite_difference, relative_error};
    use ndarray::{Array1, array};

    #[test]
    fn one_observation_has_the_density_of_a_normal_number() {
        let process = process(scaled_rbf(2.0, 1.0), 0.5, 0.25);
        let evidence = process.evidence(array![[7.0]].view(), array![2.0].view());
        let want = -0.5 * (1.5 * 1.5 / 2.25 + (TAU * 2.25).ln());
        assert!((evidence.unwrap().log_likelihood - want).abs() < 1e-14);
    }

    #[test]
    fn two_observations_have_the_density_of_a_pair() {
        let process = process(scaled_rbf(1.5, 2.0), -1.0, 0.5);
        let (x, y) = (array![[0.0], [2.0]], array![0.3, -2.0]);
        let (a, b) = (2.0, 1.5 * (-0.5_f64).exp());
        let determinant = a * a - b * b;
        let (r, s) = (1.3, -1.0);
        let misfit = (a * (r * r + s * s) - 2.0 * b * r * s) / determinant;
        let want = -0.5 * (misfit + determinant.ln() + 2.0 * TAU.ln());
        let evidence = process.evidence(x.view(), y.view()).unwrap();
        assert!((evidence.log_likelihood - want).abs() < 1e-14);
    }

    #[test]
    fn nothing_observed_is_certain() {
        let process = process(scaled_rbf(1.5, 2.0), -1.0, 0.5);
        let (x, y) = (Array2::zeros((0, 3)), Array1::zeros(0));
        let got = process.evidence_gradient(x.view(), y.view()).unwrap();
        assert_eq!(got.evidence.log_likelihood, 0.0);
        assert_eq!(got.parameters, [0.0; 4]);
    }

    #[test]
    fn gradients_agree_with_finite_differences_for_every_kernel() {
        for kernel in kernels() {
            let (x, y) = (random((9, 2), "x"), random(9, "y"));
            let mut process = process(kernel, 0.3, 0.2);
            let got = process.evidence_gradient(x.view(), y.view()).unwrap();

            let values: Vec<f64> = process.parameters().iter().map(|p| p.value).collect();
            let want = finite_difference(&values, |v| {
                process.set_parameters(v).unwrap();
                let evidence = process.evidence(x.view(), y.view()).unwrap();
                evidence.log_likelihood
            });
            process.set_parameters(&values).unwrap();
            let name = format!("{:?}", process.kernel());
            assert!(relative_error(&got.parameters, &want) < 1e-6, "{name}");

            let coordinates = process.coordinates();
            let want = finite_difference(&coordinates, |c| {
                process.set_coordinates(c).unwrap();
                let evidence = process.evidence(x.view(), y.view()).unwrap();
                evidence.log_likelihood
            });
            assert!(relative_error(&got.coordinates, &want) < 1e-6, "{name}");
        }
    }

    #[test]
    fn repeated_inputs_need_noise_or_jitter_and_say_so() {
        let (x, y) = (Array2::ones((6, 1)), random(6, "y"));
        let mut process = process(scaled_rbf(1.0, 1.0), 0.0, 1e-18);
        let error = process.evidence(x.view(), y.view()).unwrap_err();
        assert!(
            matches!(error, Error::NotPositiveDefinite { order: 6, jitter, row: 1, pivot }
            if jitter == 0.0 && pivot.abs() < 1e-15)
        );
        process.jitter = Jitter::Escalating {
            first: 1e-18,
            last: 1e-6,
        };
        let evidence = process.evidence(x.view(), y.view()).unwrap();
        assert!(evidence.jitter > 1e-18 && evidence.jitter < 1e-12);
    }

    #[test]
    fn data_that_do_not_fit_are_named() {
        let process = process(scaled_rbf(1.0, 1.0), 0.0, 0.1);
        let (x, y) = (random((3, 2), "x"), random(3, "y"));
        let said = |x: &Array2<f64>, y: &Array1<f64>| {
            process
                .evidence(x.view(), y.view())
                .unwrap_err()
                .to_string()
        };
        assert!(said(&x, &random(2, "y")).contains("`y` has length 2, but must have length 3"));
        let mut gap = x.clone();
        gap[[1, 1]] = f64::NAN;
        assert!(said(&gap, &y).contains("`x` is NaN at [1, 1]"));
        assert!(said(&x, &array![0.0, 1.0, f64::INFINITY]).contains("`y` is inf at [2]"));
        let huge = said(&x, &array![0.0, 1.0, 1e200]);
        assert!(
            huge.contains("misfit of y") && huge.contains("scale `y` down"),
            "{huge}"
        );
        let none = said(&Array2::zeros((3, 0)), &y);
        assert!(
            none.starts_with("`the number of columns of x` is 0"),
            "{none}"
        );
    }

    #[test]
    fn a_kernel_that_is_no_covariance_is_refused() {
        let season = ExpsinConfig {
            period: 3.0,
            lengthscale: Lengthscale::Shared(1.0),
        };
        let process = process(season.build().unwrap(), 0.0, 0.1);
        let (x, y) = (random((3, 2), "x"), random(3, "y"));
        let refused = process.evidence(x.view(), y.view()).unwrap_err();
        let said = refused.to_string();
        assert!(said.contains("periodic kernel is not positive semi-definite on 2 columns"));
        assert_eq!(process.prior(x.view()), Err(refused));
        let line = random((3, 1), "x");
        assert!(process.evidence(line.view(), y.view()).is_ok());
        assert!(process.prior(line.view()).is_ok());
    }
}
