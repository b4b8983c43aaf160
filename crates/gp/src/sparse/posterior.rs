//! A sparse process conditioned on observations.

use super::{SparseProcess, Summary, mat, product, standard};
use crate::saved::{Version, matrix, rows};
use crate::{Error, Evidence, GaussianProcess, Prediction};
use bochner_dense::Cholesky;
use bochner_kernels::Kernel;
use bochner_numerics::argument;
use ndarray::{Array2, ArrayView1, ArrayView2};
use serde::{Deserialize, Serialize};

/// A [`SparseProcess`] conditioned on observations, of which it keeps $O(m^2)$ numbers.
///
/// [`SparseProcess::condition`] makes it. serde writes the process, the inducing points and these numbers, not the
/// observations.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Saved", into = "Saved")]
pub struct SparsePosterior {
    process: GaussianProcess,
    inducing: Array2<f64>,
    summary: Summary,
}

/// A sparse posterior as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    version: Version,
    process: GaussianProcess,
    inducing: Vec<Vec<f64>>,
    jitter: f64,
    squares: Vec<Vec<f64>>,
    weights: Vec<f64>,
    explained: f64,
    sums: [f64; 3],
    observations: usize,
}

impl TryFrom<Saved> for SparsePosterior {
    type Error = Error;

    fn try_from(saved: Saved) -> Result<Self, Error> {
        let inducing = matrix("inducing", &saved.inducing)?;
        let squares = matrix("squares", &saved.squares)?;
        let m = inducing.nrows();
        argument::shape("squares", &[m, m], squares.shape())?;
        argument::shape("weights", &[m], &[saved.weights.len()])?;
        argument::finite("weights", &[m], &saved.weights)?;
        argument::finite("sums", &[3], &saved.sums)?;
        argument::in_range(
            saved.explained.is_finite(),
            "explained",
            saved.explained,
            "finite",
        )?;
        argument::non_negative("jitter", saved.jitter)?;
        let SparseProcess { process, inducing } = SparseProcess::new(saved.process, inducing)?;
        let gram = process.kernel.gram(inducing.view(), inducing.view())?;
        let factor = Cholesky::shifted(gram.view(), saved.jitter)?;
        let mut whiten = Array2::eye(m);
        factor.whiten(whiten.view_mut())?;
        let summary = Summary {
            whiten,
            jitter: saved.jitter,
            precision: Cholesky::shifted(squares.view(), 1.0)?,
            squares,
            weights: saved.weights,
            explained: saved.explained,
            sums: saved.sums,
            observations: saved.observations,
        };
        Ok(Self {
            process,
            inducing,
            summary,
        })
    }
}

impl From<SparsePosterior> for Saved {
    fn from(posterior: SparsePosterior) -> Self {
        let summary = posterior.summary;
        let version = Version;
        Self {
            version,
            process: posterior.process,
            inducing: rows(&posterior.inducing),
            jitter: summary.jitter,
            squares: rows(&summary.squares),
            weights: summary.weights,
            explained: summary.explained,
            sums: summary.sums,
            observations: summary.observations,
        }
    }
}

impl SparseProcess {
    /// Conditions the process on the observations `y: [n]` at `x: [n, d]`.
    ///
    /// # Errors
    /// The errors of [`bound`](Self::bound).
    ///
    /// # Numerics
    /// Those of [`bound`](Self::bound), once.
    pub fn condition(
        &self,
        x: ArrayView2<f64>,
        y: ArrayView1<f64>,
    ) -> Result<SparsePosterior, Error> {
        Ok(SparsePosterior {
            summary: Summary::new(&self.process, self.inducing.view(), x, y)?,
            process: self.process.clone(),
            inducing: self.inducing.clone(),
        })
    }
}

impl SparsePosterior {
    /// The process before the observations.
    pub fn process(&self) -> &GaussianProcess {
        &self.process
    }

    /// The [`SparseProcess::bound`] of the observations.
    pub fn bound(&self) -> Evidence {
        self.summary.bound()
    }

    /// The mean and variance at each of the inputs.
    ///
    /// $$\mu_\ast = m + a_\ast^\top w, \qquad
    /// \sigma_\ast^2 = k(x_\ast, x_\ast) - |a_\ast|^2 + a_\ast^\top B^{-1} a_\ast, \qquad
    /// a_\ast = L^{-1} k_z(x_\ast)$$
    ///
    /// *where* $L L^\top = K_{zz} + j I$, $B = I + \sum_i a_i a_i^\top / D_{ii}$ and
    /// $w = B^{-1} \sum_i a_i r_i / D_{ii}$.
    ///
    /// # Shapes
    /// `x: [q, d]`.
    ///
    /// # Errors
    /// [`Error::Argument`] if `x` is not finite or not as wide as the inducing points, [`Error::Covariance`].
    ///
    /// # Numerics
    /// $O(q m^2)$ time. A variance that rounding leaves below zero is zero.
    ///
    /// # Reference
    /// Titsias, 2009, equation 6 with the optimal distribution of equation 10.
    pub fn predict(&self, x: ArrayView2<f64>) -> Result<Prediction, Error> {
        argument::shape("x", &[x.nrows(), self.inducing.ncols()], x.shape())?;
        argument::finite("x", x.shape(), x)?;
        let kernel = &self.process.kernel;
        let gram = standard(kernel.gram(x, self.inducing.view())?);
        let whitened = product(mat(&gram), mat(&self.summary.whiten));
        let mut explained = whitened.clone();
        self.summary.precision.whiten(explained.view_mut())?;
        let weights = ArrayView1::from(&self.summary.weights);
        let mean = whitened.dot(&weights) + self.process.mean;
        let mut latent_variance = kernel.diagonal(x)?;
        let rows = whitened.rows().into_iter().zip(explained.rows());
        for (row, (variance, (a, b))) in latent_variance.iter_mut().zip(rows).enumerate() {
            let got = *variance - a.dot(&a) + b.dot(&b);
            if !got.is_finite() || !mean[row].is_finite() {
                let column = row;
                return Err(Error::Covariance { row, column, got });
            }
            *variance = got.max(0.0);
        }
        Ok(Prediction {
            mean,
            observed_variance: &latent_variance + self.process.noise,
            latent_variance,
        })
    }
}
