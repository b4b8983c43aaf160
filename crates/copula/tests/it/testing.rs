//! Factors, copulas and marginals that the tests share.

#[cfg(feature = "distributions")]
use bochner_copula::{GaussianCopula, LogTails, Marginal};
use bochner_numerics::check;
use ndarray::Array4;

/// Random matrices `[n, d, M, M]` with a positive diagonal; their rows are not normalised.
pub(crate) fn factors(n: usize, d: usize, heads: usize) -> Array4<f64> {
    let mut factors: Array4<f64> = check::random((n, d, heads, heads), "factors");
    for ((.., m, k), x) in factors.indexed_iter_mut() {
        if m == k {
            *x = 0.2 + x.abs();
        }
    }
    factors
}

/// The copula of two coordinates with this correlation.
#[cfg(feature = "distributions")]
pub(crate) fn of_pair(r: f64) -> GaussianCopula {
    GaussianCopula::from_correlation(ndarray::array![[1.0, r], [r, 1.0]].view()).unwrap()
}

/// A marginal whose functions all return NaN.
#[cfg(feature = "distributions")]
pub(crate) struct Broken;

#[cfg(feature = "distributions")]
impl Marginal for Broken {
    fn log_density(&self, _: f64) -> f64 {
        f64::NAN
    }

    fn log_tails(&self, _: f64) -> LogTails {
        LogTails {
            lower: f64::NAN,
            upper: f64::NAN,
        }
    }

    fn support(&self) -> (f64, f64) {
        (f64::NEG_INFINITY, f64::INFINITY)
    }
}
