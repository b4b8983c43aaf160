//! The correlation matrix of greatest likelihood.

use crate::Error;
use crate::density::normal_scores;
use crate::distributions::fit::{CopulaFit, SMALLEST};
use crate::distributions::gaussian::GaussianCopula;
use bochner_dense::{Cholesky, symmetric_eigenvalues};
use bochner_numerics::argument;
use ndarray::{Array1, Array2, ArrayView2, Axis};

const ITERATIONS: usize = 200;
const TOLERANCE: f64 = 1e-11;

impl GaussianCopula {
    /// Fits a copula to uniform scores by maximum likelihood.
    ///
    /// $$\hat R = \arg\max_R \\, -\tfrac12 \log \det R - \tfrac12 \operatorname{tr} R^{-1} S, \qquad
    ///   S = \tfrac1n \sum_i x_i x_i^\top$$
    ///
    /// *where* *x* are the normal scores of *u*, and *R* has ones on its diagonal. The scores come from known or
    /// fitted marginals, or from [`pseudo_observations`](crate::pseudo_observations).
    ///
    /// # Shapes
    /// `u: [n, M]`, strictly between 0 and 1.
    ///
    /// # Errors
    /// [`Error::Argument`] for no coordinates, [`Error::TooFew`] below two rows, [`Error::Score`],
    /// [`Error::NoConvergence`].
    ///
    /// # Numerics
    /// Fisher's scoring on the correlation matrices: $R + (S - R) + R \Lambda R$, where the diagonal matrix $\Lambda$ keeps
    /// the diagonal at one. Without at least `M` independent rows the likelihood has no maximum; the eigenvalues then
    /// stay above 1e-6.
    pub fn fit_maximum_likelihood(u: ArrayView2<f64>) -> Result<CopulaFit, Error> {
        argument::not_empty("u", u.shape())?;
        if u.nrows() < 2 {
            return Err(Error::TooFew { got: u.nrows() });
        }
        Self::most_likely(normal_scores(u, u.ncols())?)
    }

    /// The most likely copula of normal scores.
    pub(crate) fn most_likely(scores: Array2<f64>) -> Result<CopulaFit, Error> {
        let moments = scores.t().dot(&scores) / scores.nrows() as f64;
        let start = Self::of_scores(scores)?.copula;
        let correlation = most_likely_correlation(moments.view(), start.correlation())?;
        Ok(CopulaFit {
            smallest_eigenvalue: symmetric_eigenvalues(correlation.view())?[0],
            copula: Self::from_correlation(correlation.view())?,
        })
    }
}

/// The correlation matrix that maximises the likelihood of second moments *S*, from a first one.
pub(crate) fn most_likely_correlation(
    moments: ArrayView2<f64>,
    start: ArrayView2<f64>,
) -> Result<Array2<f64>, Error> {
    let mut r = start.to_owned();
    let mut value = likelihood(&r, moments).unwrap_or(f64::NEG_INFINITY);
    let mut residual = f64::INFINITY;
    for _ in 0..ITERATIONS {
        let step = scoring_step(&r, moments)?;
        residual = step.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        if residual < TOLERANCE {
            return Ok(r);
        }
        let tried = (0..40).map(|k| &r + &(&step * 0.5_f64.powi(k)));
        let better = tried.into_iter().find_map(|next| {
            let at_next = likelihood(&next, moments)?;
            (at_next > value).then_some((next, at_next))
        });
        match better {
            Some((next, at_next)) => (r, value) = (next, at_next),
            // No step is left that the likelihood can tell from none.
            None => return Ok(r),
        }
    }
    Err(Error::NoConvergence {
        what: "most likely correlation matrix",
        iterations: ITERATIONS,
        residual,
    })
}

/// The logarithm of the likelihood of an observation, up to a constant; `None` if the matrix is too close to singular.
fn likelihood(r: &Array2<f64>, moments: ArrayView2<f64>) -> Option<f64> {
    if symmetric_eigenvalues(r.view()).ok()?[0] < SMALLEST {
        return None;
    }
    let factor = Cholesky::new(r.view()).ok()?;
    let trace = (&factor.inverse() * &moments).sum();
    Some(-0.5 * (factor.log_determinant() + trace))
}

/// `S - R + R Lambda R` with a diagonal of zeros.
fn scoring_step(r: &Array2<f64>, moments: ArrayView2<f64>) -> Result<Array2<f64>, Error> {
    let squares = Cholesky::new((r * r).view())?;
    let mut multipliers = moments.diag().mapv(|s| 1.0 - s);
    squares.solve(multipliers.view_mut().insert_axis(Axis(0)))?;
    let weighted: Array2<f64> = r * &Array1::from(multipliers);
    let mut step = &moments - r + weighted.dot(r);
    step = 0.5 * (&step + &step.t());
    step.diag_mut().fill(0.0);
    Ok(step)
}
