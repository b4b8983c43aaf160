//! The divergence of the mean-field posterior from the prior.

use bochner_numerics::check::random;
use bochner_spectral::{Error, kl_mean_field, kl_mean_field_vjp};
use ndarray::{Array3, array};

#[test]
fn the_closed_form_agrees_with_quadrature() {
    let (mu, sigma, s0) = (0.3_f64, 0.4_f64, 0.7_f64);
    let log_density = |z: f64, mean: f64, std: f64| {
        let u = (z - mean) / std;
        -0.5 * u * u - std.ln() - 0.5 * (2.0 * std::f64::consts::PI).ln()
    };
    let (n, reach) = (4000, 12.0 * sigma);
    let step = 2.0 * reach / n as f64;
    let integral: f64 = (0..=n)
        .map(|i| mu - reach + step * i as f64)
        .map(|z| {
            let log_q = log_density(z, mu, sigma);
            log_q.exp() * (log_q - log_density(z, 0.0, s0)) * step
        })
        .sum();
    let kl = kl_mean_field(array![[[mu]]].view(), array![[[sigma.ln()]]].view(), s0).unwrap();
    assert!((kl[0] - integral).abs() < 1e-9);
}

#[test]
fn what_does_not_fit_is_named() {
    let mu: Array3<f64> = random((2, 2, 3), "mu");
    let narrow: Array3<f64> = random((2, 2, 2), "narrow");
    let named = |error: Error, name: &str| {
        assert!(error.to_string().starts_with(name), "{error}");
    };
    let (m, one) = (mu.view(), array![1.0]);
    named(
        kl_mean_field(m, narrow.view(), 1.0).unwrap_err(),
        "`log_sigma`",
    );
    for prior_std in [f64::NAN, 0.0, 1e-200] {
        named(kl_mean_field(m, m, prior_std).unwrap_err(), "`prior_std`");
    }
    let error = kl_mean_field_vjp(m, m, 1.0, one.view()).unwrap_err();
    named(error, "`cotangent`");
}

#[test]
fn finite_arguments_give_no_nan() {
    for (mu, log_sigma) in [(1e300, 1e300), (-1e300, -1e300), (0.0, 400.0)] {
        let (mu, log_sigma) = (array![[[mu, 0.0]]], array![[[log_sigma, 0.0]]]);
        let (mu, log_sigma) = (mu.view(), log_sigma.view());
        let kl = kl_mean_field(mu, log_sigma, 0.1).unwrap();
        assert!(kl[0] > 0.0, "{kl}");
        for cotangent in [0.0, 1.0, -1e300] {
            let g = kl_mean_field_vjp(mu, log_sigma, 0.1, array![cotangent].view()).unwrap();
            let mut all = g.mu.iter().chain(&g.log_sigma);
            assert!(all.all(|g: &f64| !g.is_nan()), "{g:?}");
        }
    }
}
