//! The process conditioned on observations.

use crate::evidence::{Observed, check_inputs};
use crate::saved::{matrix, rows};
use crate::{Error, Evidence, EvidenceGradient, GaussianProcess, MultivariateNormal};
use bochner_kernels::Kernel;
use bochner_numerics::{Mat, MatMut, argument, matmul};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use serde::{Deserialize, Serialize};

/// A process conditioned on observations, which it owns.
///
/// [`GaussianProcess::condition`] makes it. serde writes the process and the observations, and reading factorises
/// again; see [`GaussianProcess`] for what is refused.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Saved", into = "Saved")]
pub struct Posterior {
    process: GaussianProcess,
    x: Array2<f64>,
    y: Vec<f64>,
    observed: Observed,
}

/// A posterior as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    process: GaussianProcess,
    x: Vec<Vec<f64>>,
    y: Vec<f64>,
}

impl TryFrom<Saved> for Posterior {
    type Error = Error;

    fn try_from(saved: Saved) -> Result<Self, Error> {
        let x = matrix("x", &saved.x)?;
        (saved.process).condition(x.view(), ArrayView1::from(&saved.y))
    }
}

impl From<Posterior> for Saved {
    fn from(posterior: Posterior) -> Self {
        Self {
            x: rows(&posterior.x),
            y: posterior.y,
            process: posterior.process,
        }
    }
}

/// The predicted marginals at a set of inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The mean of the function's values and of observations of them, `[m]`.
    pub mean: Array1<f64>,
    /// The variance of the function's values, `[m]`.
    pub latent_variance: Array1<f64>,
    /// The variance of observations, the sum of `latent_variance` and the process's `noise`, `[m]`.
    pub observed_variance: Array1<f64>,
}

impl GaussianProcess {
    /// Conditions the process on the observations `y: [n]` at `x: [n, d]`.
    ///
    /// Without observations the posterior is the process itself.
    ///
    /// # Errors
    /// The errors of [`evidence`](Self::evidence).
    ///
    /// # Numerics
    /// $O(n^3)$ time, once; $O(n^2)$ memory.
    pub fn condition(&self, x: ArrayView2<f64>, y: ArrayView1<f64>) -> Result<Posterior, Error> {
        Ok(Posterior {
            observed: self.observe(x, y)?,
            process: self.clone(),
            x: x.to_owned(),
            y: y.to_vec(),
        })
    }

    /// The function's values at `x: [m, d]` before anything is observed.
    ///
    /// # Errors
    /// [`Error::Argument`] if `x` is not finite, [`Error::Kernel`] if the kernel is not positive
    /// semi-definite on inputs of this width.
    pub fn prior(&self, x: ArrayView2<f64>) -> Result<MultivariateNormal, Error> {
        check_inputs(x)?;
        self.kernel.check_positive_semi_definite(x.ncols())?;
        Ok(MultivariateNormal {
            mean: Array1::from_elem(x.nrows(), self.mean),
            covariance: self.kernel.gram(x, x)?,
        })
    }
}

impl Posterior {
    /// The process before the observations.
    pub fn process(&self) -> &GaussianProcess {
        &self.process
    }

    /// The jitter that was added to the noise of the observations.
    pub fn jitter(&self) -> f64 {
        self.observed.jitter
    }

    /// The [`GaussianProcess::evidence`] of the observations, without factorising again.
    pub fn evidence(&self) -> Evidence {
        self.observed.evidence()
    }

    /// The [`GaussianProcess::evidence_gradient`], without factorising again.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the kernel has no gradient where it had a value.
    pub fn evidence_gradient(&self) -> Result<EvidenceGradient, Error> {
        self.observed.gradient(&self.process, self.x.view())
    }

    /// The mean at the inputs that were observed, without any product with the Gram matrix.
    ///
    /// $$m + K A^{-1} r = y - \bigl((\sigma^2 + j) I + \operatorname{diag}(v)\bigr) A^{-1} r$$
    ///
    /// # Shapes
    /// `[n]`, in the order of the observations.
    pub fn fitted(&self) -> Array1<f64> {
        let (mean, noise) = (self.process.mean, self.process.noise + self.jitter());
        let known = self.process.observation_noise.iter().flatten().copied();
        let known = known.chain(std::iter::repeat(0.0));
        let pairs = self.observed.residuals.iter().zip(&self.observed.alpha);
        let pairs = pairs.zip(known);
        pairs
            .map(|((r, a), v)| mean + (r - (noise + v) * a))
            .collect()
    }

    /// The means of [`predict`](Self::predict) alone.
    ///
    /// # Errors
    /// The errors of [`predict`](Self::predict).
    ///
    /// # Numerics
    /// $O(m n)$ time.
    pub fn predict_mean(&self, x: ArrayView2<f64>) -> Result<Array1<f64>, Error> {
        Ok(self.mean_of(&self.cross(x)?))
    }

    /// The mean and variance at each of the inputs.
    ///
    /// $$\mu_\ast = m + k_\ast^\top A^{-1} r, \qquad
    /// \sigma_\ast^2 = k(x_\ast, x_\ast) - |L^{-1} k_\ast|^2, \qquad L L^\top = A$$
    ///
    /// *where* $k_\ast$ are the covariances of $x_*$ and the observed inputs, and $A$, $r$ are those
    /// of [`GaussianProcess::evidence`].
    ///
    /// # Shapes
    /// `x: [m, d]`.
    ///
    /// # Errors
    /// [`Error::Argument`] if `x` is not finite or not as wide as the observed inputs,
    /// [`Error::Covariance`].
    ///
    /// # Numerics
    /// $O(m n^2)$ time. Where the two terms of a variance cancel, rounding can leave it below
    /// zero, by about $10^{-16} k(x_\ast, x_\ast)$ times the condition of $A$; it is then zero.
    ///
    /// # Reference
    /// Rasmussen, Williams, 2006, algorithm 2.1.
    pub fn predict(&self, x: ArrayView2<f64>) -> Result<Prediction, Error> {
        let (mean, whitened) = self.project(x)?;
        let mut latent_variance = self.process.kernel.diagonal(x)?;
        let rows = latent_variance.iter_mut().zip(whitened.rows());
        for (row, (variance, v)) in rows.enumerate() {
            let got = *variance - v.dot(&v);
            if !got.is_finite() {
                // The larger of NaN and zero would be zero: a prediction that claims to be certain.
                return Err(Error::Covariance {
                    row,
                    column: row,
                    got,
                });
            }
            *variance = got.max(0.0);
        }
        Ok(Prediction {
            mean,
            observed_variance: &latent_variance + self.process.noise,
            latent_variance,
        })
    }

    /// The joint distribution of the function's values at all of the inputs.
    ///
    /// $$\Sigma_{ij} = k(x_i, x_j) - (L^{-1} k_i)^\top (L^{-1} k_j)$$
    ///
    /// # Errors
    /// The errors of [`predict`](Self::predict).
    ///
    /// # Numerics
    /// $O(m n^2 + m^2 n)$ time, $O(m^2 + m n)$ memory. Nothing is clamped: the diagonal may lie
    /// below zero by rounding.
    pub fn joint(&self, x: ArrayView2<f64>) -> Result<MultivariateNormal, Error> {
        let (mean, whitened) = self.project(x)?;
        let mut covariance = self.process.kernel.gram(x, x)?;
        let (m, n) = whitened.dim();
        let rows = whitened
            .as_slice()
            .expect("a Gram matrix in row-major order");
        let v = Mat::new(rows, m, n);
        let out = covariance.as_slice_mut().expect("in row-major order");
        matmul(-1.0, v, v.t(), 1.0, MatMut::new(out, m, m));
        check_covariance(&covariance)?;
        Ok(MultivariateNormal { mean, covariance })
    }

    /// The means, and the rows $L^{-1} k_*$ of all inputs.
    fn project(&self, x: ArrayView2<f64>) -> Result<(Array1<f64>, Array2<f64>), Error> {
        let mut cross = self.cross(x)?;
        let mean = self.mean_of(&cross);
        self.observed.factor.whiten(cross.view_mut())?;
        Ok((mean, cross))
    }

    /// The covariances of the inputs asked for with the observed inputs: the rows $k_*$.
    fn cross(&self, x: ArrayView2<f64>) -> Result<Array2<f64>, Error> {
        argument::shape("x", &[x.nrows(), self.x.ncols()], x.shape())?;
        argument::finite("x", x.shape(), x)?;
        let cross = self.process.kernel.gram(x, self.x.view())?;
        check_covariance(&cross)?;
        Ok(cross.as_standard_layout().into_owned())
    }

    fn mean_of(&self, cross: &Array2<f64>) -> Array1<f64> {
        let alpha = ArrayView1::from(&self.observed.alpha);
        let means = cross.rows().into_iter().map(|k| k.dot(&alpha));
        means.map(|shift| self.process.mean + shift).collect()
    }
}

/// Refuses a covariance that is not finite.
fn check_covariance(covariance: &Array2<f64>) -> Result<(), Error> {
    let mut entries = covariance.indexed_iter();
    match entries.find(|(_, k)| !k.is_finite()) {
        Some(((row, column), &got)) => Err(Error::Covariance { row, column, got }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Jitter;
    use crate::testing::{kernels, linear, process, scaled_rbf};
    use bochner_numerics::check::random;
    use ndarray::array;

    #[test]
    fn one_observation_pulls_in_closed_form() {
        let process = process(scaled_rbf(2.0, 1.0), 0.5, 0.25);
        let posterior = process
            .condition(array![[0.0]].view(), array![2.0].view())
            .unwrap();
        let got = posterior.predict(array![[1.0]].view()).unwrap();
        let k = 2.0 * (-0.5_f64).exp();
        assert!((got.mean[0] - (0.5 + k * 1.5 / 2.25)).abs() < 1e-15);
        assert!((got.latent_variance[0] - (2.0 - k * k / 2.25)).abs() < 1e-15);
        assert_eq!(got.observed_variance[0], got.latent_variance[0] + 0.25);
        assert_eq!(posterior.jitter(), 0.0);
    }

    #[test]
    fn a_covariance_that_overflows_is_no_certainty() {
        let process = process(linear(), 0.0, 0.1);
        let posterior = process
            .condition(array![[1.0], [2.0]].view(), array![1.0, 2.0].view())
            .unwrap();
        let far = array![[0.5], [1e155]];
        let expected = |error| matches!(error, Error::Covariance { row: 1, .. });
        assert!(expected(posterior.predict(far.view()).unwrap_err()));
        assert!(expected(posterior.joint(far.view()).unwrap_err()));
        let near = posterior.predict(array![[1e150]].view()).unwrap();
        assert!(near.latent_variance[0] > 0.0 && near.latent_variance[0].is_finite());
    }

    #[test]
    fn two_observations_pull_in_closed_form() {
        let process = process(scaled_rbf(1.0, 1.0), 0.0, 0.5);
        let posterior = process
            .condition(array![[-1.0], [1.0]].view(), array![1.0, 3.0].view())
            .unwrap();
        let got = posterior.joint(array![[0.0]].view()).unwrap();
        // By symmetry only the sum of the two observations counts.
        let (k, b) = ((-0.5_f64).exp(), (-2.0_f64).exp());
        assert!((got.mean[0] - k * 4.0 / (1.5 + b)).abs() < 1e-15);
        let variance = 1.0 - 2.0 * k * k / (1.5 + b);
        assert!((got.covariance[[0, 0]] - variance).abs() < 1e-15);
    }

    #[test]
    fn without_noise_the_observations_are_met() {
        let x = array![[0.0], [0.7], [1.9], [3.2]];
        let y = array![1.0, -0.4, 0.3, 2.0];
        let distance = |noise| {
            let process = process(scaled_rbf(1.5, 0.8), 0.2, noise);
            let posterior = process.condition(x.view(), y.view()).unwrap();
            let got = posterior.predict(x.view()).unwrap();
            let variance = got.latent_variance.iter().copied().fold(0.0, f64::max);
            (&got.mean - &y).mapv(f64::abs).sum() + variance
        };
        assert!(distance(1e-12) < 1e-10);
        assert!(distance(1e-3) > 1e-4);
    }

    #[test]
    fn rounding_leaves_no_variance_below_zero() {
        // The difference of two numbers that only rounding sets apart; it often comes out negative.
        for i in 1..=100 {
            let process = process(scaled_rbf(0.1 * f64::from(i), 1.0), 0.0, 1e-20);
            let x = array![[0.5]];
            let posterior = process.condition(x.view(), array![1.0].view()).unwrap();
            let predicted = posterior.predict(x.view()).unwrap();
            assert!(predicted.latent_variance[0] >= 0.0);
        }
    }

    #[test]
    fn variances_lie_between_zero_and_the_prior_and_agree_with_the_joint() {
        for kernel in kernels() {
            let process = process(kernel, 0.1, 1e-3);
            let (x, y) = (random((12, 2), "x"), random(12, "y"));
            // One of the inputs asked for was observed.
            let mut at = random((15, 2), "at");
            at.row_mut(0).assign(&x.row(4));
            let posterior = process.condition(x.view(), y.view()).unwrap();
            let got = posterior.predict(at.view()).unwrap();
            let joint = posterior.joint(at.view()).unwrap();
            let prior = process.prior(at.view()).unwrap();
            for i in 0..15 {
                let variance = got.latent_variance[i];
                assert!(variance >= 0.0);
                assert!(variance <= prior.covariance[[i, i]] + 1e-12);
                assert!((variance - joint.covariance[[i, i]]).abs() < 1e-10);
            }
            assert_eq!(got.mean, joint.mean);
            let asymmetry = &joint.covariance - &joint.covariance.t();
            assert!(asymmetry.iter().all(|a| a.abs() < 1e-12));
            assert!(got.latent_variance[0] < 1.1e-3);
        }
    }

    #[test]
    fn one_factor_serves_evidence_gradient_and_means() {
        for kernel in kernels() {
            let process = GaussianProcess {
                jitter: Jitter::Fixed(0.125),
                ..process(kernel, 0.1, 0.25)
            };
            let (x, y, at) = (random((12, 2), "x"), random(12, "y"), random((5, 2), "at"));
            let posterior = process.condition(x.view(), y.view()).unwrap();
            let evidence = process.evidence(x.view(), y.view()).unwrap();
            assert_eq!(posterior.evidence(), evidence);
            let gradient = process.evidence_gradient(x.view(), y.view()).unwrap();
            assert_eq!(posterior.evidence_gradient().unwrap(), gradient);
            let predicted = posterior.predict(at.view()).unwrap().mean;
            assert_eq!(posterior.predict_mean(at.view()).unwrap(), predicted);
            let off = posterior.fitted() - posterior.predict_mean(x.view()).unwrap();
            assert!(off.iter().all(|o| o.abs() < 1e-12), "{off}");
        }
    }

    #[test]
    fn jitter_is_noise_of_the_past_not_of_the_future() {
        let with = |noise, jitter| GaussianProcess {
            jitter: Jitter::Fixed(jitter),
            ..process(scaled_rbf(1.5, 0.8), 0.2, noise)
        };
        let (x, y, at) = (random((5, 2), "x"), random(5, "y"), random((3, 2), "at"));
        let (jittered, noisy) = (with(0.25, 0.125), with(0.375, 0.0));
        let a = jittered.evidence(x.view(), y.view()).unwrap();
        let b = noisy.evidence(x.view(), y.view()).unwrap();
        assert_eq!(a.log_likelihood, b.log_likelihood);
        assert_eq!((a.jitter, b.jitter), (0.125, 0.0));
        let (a, b) = (
            jittered.condition(x.view(), y.view()).unwrap(),
            noisy.condition(x.view(), y.view()).unwrap(),
        );
        assert_eq!(a.jitter(), 0.125);
        let (a, b) = (a.predict(at.view()).unwrap(), b.predict(at.view()).unwrap());
        assert_eq!(a.mean, b.mean);
        assert_eq!(a.latent_variance, b.latent_variance);
        assert_eq!(a.observed_variance, &a.latent_variance + 0.25);
    }

    #[test]
    fn without_observations_the_prior_is_left() {
        let process = process(scaled_rbf(1.5, 0.8), 0.2, 0.1);
        let none = Array2::zeros((0, 2));
        let posterior = process
            .condition(none.view(), Array1::zeros(0).view())
            .unwrap();
        let at = random((4, 2), "at");
        assert_eq!(
            posterior.joint(at.view()).unwrap(),
            process.prior(at.view()).unwrap()
        );
        let got = posterior.predict(at.view()).unwrap();
        assert_eq!(got.latent_variance, Array1::from_elem(4, 1.5));
        // Without inputs there are no predictions.
        let nothing = posterior.predict(none.view()).unwrap();
        assert_eq!(nothing.mean.len(), 0);
    }

    #[test]
    fn inputs_that_do_not_fit_are_named() {
        let process = process(scaled_rbf(1.0, 1.0), 0.0, 0.1);
        let (x, y) = (random((3, 2), "x"), random(3, "y"));
        let posterior = process.condition(x.view(), y.view()).unwrap();
        let wide = posterior.predict(random((3, 3), "x").view());
        let said = wide.unwrap_err().to_string();
        assert!(said.contains("`x` has shape [3, 3], but must have [3, 2]"));
        let gap = posterior.joint(array![[0.0, f64::NAN]].view()).unwrap_err();
        assert!(gap.to_string().contains("`x` is NaN at [0, 1]"));
        // The kernel is linear, so that its values overflow before its inputs do.
        let process = crate::testing::process(linear(), 0.0, 0.1);
        let posterior = process.condition(array![[1e200]].view(), array![0.0].view());
        let (row, column, got) = (0, 0, f64::INFINITY);
        assert_eq!(
            posterior.unwrap_err(),
            Error::Covariance { row, column, got }
        );
        let posterior = process
            .condition(array![[1e120]].view(), array![0.0].view())
            .unwrap();
        let far = posterior.predict_mean(array![[0.0], [1e200]].view());
        let row = 1;
        assert_eq!(far.unwrap_err(), Error::Covariance { row, column, got });
    }
}
