//! The process conditioned on observations.

use crate::testing::{config, kernels, linear, process, scaled_rbf};
use bochner_gp::{Error, GaussianProcessConfig, Jitter};
use bochner_numerics::check::random;
use ndarray::{Array1, Array2, array};

#[test]
fn one_observation_pulls_in_closed_form() {
    let process = process(scaled_rbf(2.0, 1.0), 0.5, 0.25);
    let posterior = process
        .condition(array![[0.0]].view(), array![2.0].view())
        .unwrap();
    let got = posterior.predict(array![[1.0]].view()).unwrap();
    let k = 2.0 * (-0.5_f64).exp();
    assert!((got.mean[0] - (0.5 + k * 1.5 / 2.25)).abs() < 1e-15);
    assert!((got.latent_variance[0] - (2.0 - k * k / 2.25)).abs() < 1e-15);
    assert_eq!(got.observed_variance[0], got.latent_variance[0] + 0.25);
    assert_eq!(posterior.jitter(), 0.0);
}

#[test]
fn a_covariance_that_overflows_is_no_certainty() {
    let process = process(linear(), 0.0, 0.1);
    let posterior = process
        .condition(array![[1.0], [2.0]].view(), array![1.0, 2.0].view())
        .unwrap();
    let far = array![[0.5], [1e155]];
    let expected = |error| matches!(error, Error::Covariance { row: 1, .. });
    assert!(expected(posterior.predict(far.view()).unwrap_err()));
    assert!(expected(posterior.joint(far.view()).unwrap_err()));
    let near = posterior.predict(array![[1e150]].view()).unwrap();
    assert!(near.latent_variance[0] > 0.0 && near.latent_variance[0].is_finite());
}

#[test]
fn without_noise_the_observations_are_met() {
    let x = array![[0.0], [0.7], [1.9], [3.2]];
    let y = array![1.0, -0.4, 0.3, 2.0];
    let distance = |noise| {
        let process = process(scaled_rbf(1.5, 0.8), 0.2, noise);
        let posterior = process.condition(x.view(), y.view()).unwrap();
        let got = posterior.predict(x.view()).unwrap();
        let variance = got.latent_variance.iter().copied().fold(0.0, f64::max);
        (&got.mean - &y).mapv(f64::abs).sum() + variance
    };
    assert!(distance(1e-12) < 1e-10);
    assert!(distance(1e-3) > 1e-4);
}

#[test]
fn rounding_leaves_no_variance_below_zero() {
    // The difference of two numbers that only rounding sets apart; it often comes out negative.
    for i in 1..=100 {
        let process = process(scaled_rbf(0.1 * f64::from(i), 1.0), 0.0, 1e-20);
        let x = array![[0.5]];
        let posterior = process.condition(x.view(), array![1.0].view()).unwrap();
        let predicted = posterior.predict(x.view()).unwrap();
        assert!(predicted.latent_variance[0] >= 0.0);
    }
}

#[test]
fn variances_lie_between_zero_and_the_prior_and_agree_with_the_joint() {
    for kernel in kernels() {
        let process = process(kernel, 0.1, 1e-3);
        let (x, y) = (random((12, 2), "x"), random(12, "y"));
        // One of the inputs asked for was observed.
        let mut at = random((15, 2), "at");
        at.row_mut(0).assign(&x.row(4));
        let posterior = process.condition(x.view(), y.view()).unwrap();
        let got = posterior.predict(at.view()).unwrap();
        let joint = posterior.joint(at.view()).unwrap();
        let prior = process.prior(at.view()).unwrap();
        for i in 0..15 {
            let variance = got.latent_variance[i];
            assert!(variance >= 0.0);
            assert!(variance <= prior.covariance[[i, i]] + 1e-12);
            assert!((variance - joint.covariance[[i, i]]).abs() < 1e-10);
        }
        assert_eq!(got.mean, joint.mean);
        let asymmetry = &joint.covariance - &joint.covariance.t();
        assert!(asymmetry.iter().all(|a| a.abs() < 1e-12));
        assert!(got.latent_variance[0] < 1.1e-3);
    }
}

#[test]
fn one_factor_serves_evidence_gradient_and_means() {
    for kernel in kernels() {
        let process = {
            let config = GaussianProcessConfig {
                jitter: Jitter::Fixed(0.125),
                ..config(kernel, 0.1, 0.25)
            };
            config.build().unwrap()
        };
        let (x, y, at) = (random((12, 2), "x"), random(12, "y"), random((5, 2), "at"));
        let posterior = process.condition(x.view(), y.view()).unwrap();
        let evidence = process.evidence(x.view(), y.view()).unwrap();
        assert_eq!(posterior.evidence(), evidence);
        let gradient = process.evidence_gradient(x.view(), y.view()).unwrap();
        assert_eq!(posterior.evidence_gradient().unwrap(), gradient);
        let predicted = posterior.predict(at.view()).unwrap().mean;
        assert_eq!(posterior.predict_mean(at.view()).unwrap(), predicted);
        let off = posterior.fitted() - posterior.predict_mean(x.view()).unwrap();
        assert!(off.iter().all(|o| o.abs() < 1e-12), "{off}");
    }
}

#[test]
fn jitter_is_noise_of_the_past_not_of_the_future() {
    let with = |noise, jitter| {
        let config = GaussianProcessConfig {
            jitter: Jitter::Fixed(jitter),
            ..config(scaled_rbf(1.5, 0.8), 0.2, noise)
        };
        config.build().unwrap()
    };
    let (x, y, at) = (random((5, 2), "x"), random(5, "y"), random((3, 2), "at"));
    let (jittered, noisy) = (with(0.25, 0.125), with(0.375, 0.0));
    let a = jittered.evidence(x.view(), y.view()).unwrap();
    let b = noisy.evidence(x.view(), y.view()).unwrap();
    assert_eq!(a.log_likelihood, b.log_likelihood);
    assert_eq!((a.jitter, b.jitter), (0.125, 0.0));
    let (a, b) = (
        jittered.condition(x.view(), y.view()).unwrap(),
        noisy.condition(x.view(), y.view()).unwrap(),
    );
    assert_eq!(a.jitter(), 0.125);
    let (a, b) = (a.predict(at.view()).unwrap(), b.predict(at.view()).unwrap());
    assert_eq!(a.mean, b.mean);
    assert_eq!(a.latent_variance, b.latent_variance);
    assert_eq!(a.observed_variance, &a.latent_variance + 0.25);
}

#[test]
fn without_observations_the_prior_is_left() {
    let process = process(scaled_rbf(1.5, 0.8), 0.2, 0.1);
    let none = Array2::zeros((0, 2));
    let posterior = process
        .condition(none.view(), Array1::zeros(0).view())
        .unwrap();
    let at = random((4, 2), "at");
    assert_eq!(
        posterior.joint(at.view()).unwrap(),
        process.prior(at.view()).unwrap()
    );
    let got = posterior.predict(at.view()).unwrap();
    assert_eq!(got.latent_variance, Array1::from_elem(4, 1.5));
    // Without inputs there are no predictions.
    let nothing = posterior.predict(none.view()).unwrap();
    assert_eq!(nothing.mean.len(), 0);
}

#[test]
fn inputs_that_do_not_fit_are_named() {
    let process = process(scaled_rbf(1.0, 1.0), 0.0, 0.1);
    let (x, y) = (random((3, 2), "x"), random(3, "y"));
    let posterior = process.condition(x.view(), y.view()).unwrap();
    let wide = posterior.predict(random((3, 3), "x").view());
    let said = wide.unwrap_err().to_string();
    assert!(said.contains("`x` has shape [3, 3], but must have [3, 2]"));
    let gap = posterior.joint(array![[0.0, f64::NAN]].view()).unwrap_err();
    assert!(gap.to_string().contains("`x` is NaN at [0, 1]"));
    // The kernel is linear, so that its values overflow before its inputs do.
    let process = crate::testing::process(linear(), 0.0, 0.1);
    let posterior = process.condition(array![[1e200]].view(), array![0.0].view());
    let (row, column, got) = (0, 0, f64::INFINITY);
    assert_eq!(
        posterior.unwrap_err(),
        Error::Covariance { row, column, got }
    );
    let posterior = process
        .condition(array![[1e120]].view(), array![0.0].view())
        .unwrap();
    let far = posterior.predict_mean(array![[0.0], [1e200]].view());
    let row = 1;
    assert_eq!(far.unwrap_err(), Error::Covariance { row, column, got });
}
