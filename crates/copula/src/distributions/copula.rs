//! The copula of a joint distribution: Gaussian or Student's t.

use crate::Error;
use crate::density::log_density_at_scores;
use crate::distributions::cdf::{Lattice, Probability};
use crate::distributions::gaussian::GaussianCopula;
use crate::distributions::students_t::StudentsTCopula;
use ndarray::{Array1, Array2, ArrayView2};
use rand::RngCore;
use serde::{Deserialize, Serialize};

/// A copula of either kind, that of a [`Joint`](crate::Joint).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Copula {
    /// The Gaussian copula.
    Gaussian(GaussianCopula),
    /// Student's t copula.
    StudentsT(StudentsTCopula),
}

impl From<GaussianCopula> for Copula {
    fn from(copula: GaussianCopula) -> Self {
        Self::Gaussian(copula)
    }
}

impl From<StudentsTCopula> for Copula {
    fn from(copula: StudentsTCopula) -> Self {
        Self::StudentsT(copula)
    }
}

impl Copula {
    /// The number of coordinates, *M*.
    pub fn dimension(&self) -> usize {
        self.correlation().nrows()
    }

    /// The correlation matrix *R*, `[M, M]`.
    pub fn correlation(&self) -> ArrayView2<'_, f64> {
        match self {
            Self::Gaussian(copula) => copula.correlation(),
            Self::StudentsT(copula) => copula.correlation(),
        }
    }

    /// The logarithm of the density at normal scores `[n, M]`.
    pub(crate) fn log_density_at_scores(&self, scores: Array2<f64>) -> Array1<f64> {
        match self {
            Self::Gaussian(copula) => log_density_at_scores(copula.factor(), scores.view()),
            Self::StudentsT(copula) => copula.log_density_at_scores(scores),
        }
    }

    /// The rate at which the logarithm of the density falls with half the square of a normal score that alone becomes
    /// infinite, for each coordinate.
    pub(crate) fn decay(&self) -> Vec<f64> {
        match self {
            Self::Gaussian(copula) => copula.precisions().mapv(|p| p - 1.0).to_vec(),
            Self::StudentsT(copula) => {
                let others = copula.dimension() as f64 - 1.0;
                vec![others / copula.freedom(); copula.dimension()]
            }
        }
    }

    /// Draws of normal scores.
    pub(crate) fn sample_scores(&self, n: usize, rng: &mut (impl RngCore + ?Sized)) -> Array2<f64> {
        match self {
            Self::Gaussian(copula) => copula.sample_scores(n, rng),
            Self::StudentsT(copula) => copula.sample_scores(n, rng),
        }
    }

    /// Draws of normal scores with some given.
    pub(crate) fn conditional_scores(
        &self,
        given: &[(usize, f64)],
        n: usize,
        rng: &mut (impl RngCore + ?Sized),
    ) -> Result<Array2<f64>, Error> {
        match self {
            Self::Gaussian(copula) => copula.conditional_scores(given, n, rng),
            Self::StudentsT(copula) => copula.conditional_scores(given, n, rng),
        }
    }

    /// The probability that every normal score is below its bound.
    pub(crate) fn cdf_at_scores(
        &self,
        bounds: &[f64],
        lattice: Lattice,
        rng: &mut (impl RngCore + ?Sized),
    ) -> Result<Probability, Error> {
        match self {
            Self::Gaussian(copula) => copula.cdf_at_scores(bounds, lattice, rng),
            Self::StudentsT(copula) => copula.cdf_at_scores(bounds, lattice, rng),
        }
    }
}
