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
