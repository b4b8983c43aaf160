//! The logarithm of the marginal likelihood, and its gradient.

use crate::testing::{config, kernels, process, scaled_rbf};
use bochner_gp::{Error, GaussianProcessConfig, Jitter};
use bochner_kernels::{ExpsinConfig, Lengthscale};
use bochner_numerics::check::random;
use bochner_numerics::{finite_difference, relative_error};
use ndarray::{Array1, Array2, array};
use std::f64::consts::TAU;

#[test]
fn one_observation_has_the_density_of_a_normal_number() {
    let process = process(scaled_rbf(2.0, 1.0), 0.5, 0.25);
    let evidence = process.evidence(array![[7.0]].view(), array![2.0].view());
    let want = -0.5 * (1.5 * 1.5 / 2.25 + (TAU * 2.25).ln());
    assert!((evidence.unwrap().log_likelihood - want).abs() < 1e-14);
}

#[test]
fn nothing_observed_is_certain() {
    let process = process(scaled_rbf(1.5, 2.0), -1.0, 0.5);
    let (x, y) = (Array2::zeros((0, 3)), Array1::zeros(0));
    let got = process.evidence_gradient(x.view(), y.view()).unwrap();
    assert_eq!(got.evidence.log_likelihood, 0.0);
    assert_eq!(got.parameters, [0.0; 4]);
}

#[test]
fn gradients_agree_with_finite_differences_for_every_kernel() {
    for kernel in kernels() {
        let (x, y) = (random((20, 2), "x"), random(20, "y"));
        let mut process = process(kernel, 0.3, 0.2);
        let got = process.evidence_gradient(x.view(), y.view()).unwrap();

        let values: Vec<f64> = process.parameters().iter().map(|p| p.value).collect();
        let want = finite_difference(&values, |v| {
            process.set_parameters(v).unwrap();
            let evidence = process.evidence(x.view(), y.view()).unwrap();
            evidence.log_likelihood
        });
        process.set_parameters(&values).unwrap();
        let name = format!("{:?}", process.kernel());
        assert!(relative_error(&got.parameters, &want) < 1e-6, "{name}");

        let coordinates = process.coordinates();
        let want = finite_difference(&coordinates, |c| {
            process.set_coordinates(c).unwrap();
            let evidence = process.evidence(x.view(), y.view()).unwrap();
            evidence.log_likelihood
        });
        assert!(relative_error(&got.coordinates, &want) < 1e-6, "{name}");
    }
}

#[test]
fn repeated_inputs_need_noise_or_jitter_and_say_so() {
    let (x, y) = (Array2::ones((6, 1)), random(6, "y"));
    let without = config(scaled_rbf(1.0, 1.0), 0.0, 1e-18);
    let process = without.clone().build().unwrap();
    let error = process.evidence(x.view(), y.view()).unwrap_err();
    assert!(
        matches!(error, Error::NotPositiveDefinite { order: 6, jitter, row: 1, pivot }
        if jitter == 0.0 && pivot.abs() < 1e-15)
    );
    let with = GaussianProcessConfig {
        jitter: Jitter::Escalating {
            first: 1e-18,
            last: 1e-6,
        },
        ..without
    };
    let evidence = with.build().unwrap().evidence(x.view(), y.view()).unwrap();
    assert!(evidence.jitter > 1e-18 && evidence.jitter < 1e-12);
}

#[test]
fn data_that_do_not_fit_are_named() {
    let process = process(scaled_rbf(1.0, 1.0), 0.0, 0.1);
    let (x, y) = (random((3, 2), "x"), random(3, "y"));
    let said = |x: &Array2<f64>, y: &Array1<f64>| {
        process
            .evidence(x.view(), y.view())
            .unwrap_err()
            .to_string()
    };
    assert!(said(&x, &random(2, "y")).contains("`y` has length 2, but must have length 3"));
    let mut gap = x.clone();
    gap[[1, 1]] = f64::NAN;
    assert!(said(&gap, &y).contains("`x` is NaN at [1, 1]"));
    assert!(said(&x, &array![0.0, 1.0, f64::INFINITY]).contains("`y` is inf at [2]"));
    let huge = said(&x, &array![0.0, 1.0, 1e200]);
    assert!(
        huge.contains("misfit of y") && huge.contains("scale `y` down"),
        "{huge}"
    );
    let none = said(&Array2::zeros((3, 0)), &y);
    assert!(
        none.starts_with("`the number of columns of x` is 0"),
        "{none}"
    );
}

#[test]
fn a_kernel_that_is_no_covariance_is_refused() {
    let season = ExpsinConfig {
        period: 3.0,
        lengthscale: Lengthscale::Shared(1.0),
    };
    let process = process(season.build().unwrap(), 0.0, 0.1);
    let (x, y) = (random((3, 2), "x"), random(3, "y"));
    let refused = process.evidence(x.view(), y.view()).unwrap_err();
    let said = refused.to_string();
    assert!(said.contains("periodic kernel is not positive semi-definite on 2 columns"));
    assert_eq!(process.prior(x.view()), Err(refused));
    let line = random((3, 1), "x");
    assert!(process.evidence(line.view(), y.view()).is_ok());
    assert!(process.prior(line.view()).is_ok());
}
