//! Rank correlations of the Gaussian copula, and their inverses.

use crate::Error;
use crate::distributions::gaussian::GaussianCopula;
use bochner_numerics::argument;
use ndarray::Array2;
use std::f64::consts::{FRAC_PI_2, PI};

/// Kendall's tau of a pair with correlation `r` of its normal scores.
///
/// $$\tau = \tfrac2\pi \arcsin r$$
///
/// # Errors
/// [`Error::Argument`] unless `r` lies in `[-1, 1]`.
///
/// # Reference
/// Kruskal, *Ordinal measures of association*, JASA 1958.
pub fn kendall_of_correlation(r: f64) -> Result<f64, Error> {
    Ok(within_one("r", r)?.asin() / FRAC_PI_2)
}

/// The correlation of normal scores that has the given Kendall's tau.
///
/// $$r = \sin\big(\tfrac\pi2 \tau\big)$$
///
/// # Errors
/// [`Error::Argument`] unless `tau` lies in `[-1, 1]`.
pub fn correlation_of_kendall(tau: f64) -> Result<f64, Error> {
    Ok((within_one("tau", tau)? * FRAC_PI_2).sin())
}

/// Spearman's rho of a pair with correlation `r` of its normal scores.
///
/// $$\rho_S = \tfrac6\pi \arcsin \tfrac r2$$
///
/// # Errors
/// [`Error::Argument`] unless `r` lies in `[-1, 1]`.
///
/// # Reference
/// Kruskal, *Ordinal measures of association*, JASA 1958.
pub fn spearman_of_correlation(r: f64) -> Result<f64, Error> {
    Ok(6.0 / PI * (0.5 * within_one("r", r)?).asin())
}

/// The correlation of normal scores that has the given Spearman's rho.
///
/// $$r = 2 \sin\big(\tfrac\pi6 \rho_S\big)$$
///
/// # Errors
/// [`Error::Argument`] unless `rho` lies in `[-1, 1]`.
pub fn correlation_of_spearman(rho: f64) -> Result<f64, Error> {
    Ok(2.0 * (within_one("rho", rho)? * PI / 6.0).sin())
}

impl GaussianCopula {
    /// Kendall's tau of every pair of coordinates, `[M, M]`.
    ///
    /// Each entry is [`kendall_of_correlation`] of the correlation.
    pub fn kendall_tau(&self) -> Array2<f64> {
        self.pairwise(kendall_of_correlation)
    }

    /// Spearman's rho of every pair of coordinates, `[M, M]`.
    ///
    /// Each entry is [`spearman_of_correlation`] of the correlation.
    pub fn spearman_rho(&self) -> Array2<f64> {
        self.pairwise(spearman_of_correlation)
    }

    fn pairwise(&self, measure: fn(f64) -> Result<f64, Error>) -> Array2<f64> {
        // Entries of a positive definite matrix may still round to just beyond one.
        let entry = |&r: &f64| measure(r.clamp(-1.0, 1.0)).expect("clamped");
        self.correlation().map(entry)
    }
}

fn within_one(name: &'static str, got: f64) -> Result<f64, Error> {
    let holds = (-1.0..=1.0).contains(&got);
    argument::in_range(holds, name, got, "between -1 and 1")?;
    Ok(got)
}
