//! Rank correlations of the Gaussian copula, and their inverses.

use bochner_copula::{
    correlation_of_kendall, correlation_of_spearman, kendall_of_correlation,
    spearman_of_correlation,
};

#[test]
fn both_measures_invert() {
    for r in [-1.0, -0.7, 0.0, 1e-9, 0.3, 1.0] {
        let tau = kendall_of_correlation(r).unwrap();
        assert!((correlation_of_kendall(tau).unwrap() - r).abs() < 1e-15);
        let rho = spearman_of_correlation(r).unwrap();
        assert!((correlation_of_spearman(rho).unwrap() - r).abs() < 1e-15);
    }
}

#[test]
fn what_is_no_correlation_is_refused() {
    for got in [1.5, f64::NAN] {
        assert!(kendall_of_correlation(got).is_err() && spearman_of_correlation(got).is_err());
        assert!(correlation_of_kendall(got).is_err() && correlation_of_spearman(got).is_err());
    }
}
