//! Rank correlations of the Gaussian copula, and their inverses.

use bochner_copula::{
    GaussianCopula, correlation_of_kendall, correlation_of_spearman, kendall_of_correlation,
    spearman_of_correlation,
};
use ndarray::array;
use std::f64::consts::PI;

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
fn a_half_by_hand() {
    assert!((kendall_of_correlation(0.5).unwrap() - 1.0 / 3.0).abs() < 1e-15);
    let r = 2.0 * (PI / 12.0).sin();
    assert!((spearman_of_correlation(r).unwrap() - 0.5).abs() < 1e-15);
}

#[test]
fn matrices_are_measured_entry_by_entry() {
    let copula = GaussianCopula::from_correlation(array![[1.0, 0.5], [0.5, 1.0]].view());
    let tau = copula.as_ref().unwrap().kendall_tau();
    assert!((tau[[0, 1]] - 1.0 / 3.0).abs() < 1e-15 && tau[[1, 1]] == 1.0);
    let rho = copula.unwrap().spearman_rho();
    assert!((rho[[1, 0]] - 6.0 / PI * 0.25_f64.asin()).abs() < 1e-15);
}

#[test]
fn what_is_no_correlation_is_refused() {
    for got in [1.5, f64::NAN] {
        assert!(kendall_of_correlation(got).is_err() && spearman_of_correlation(got).is_err());
        assert!(correlation_of_kendall(got).is_err() && correlation_of_spearman(got).is_err());
    }
}
