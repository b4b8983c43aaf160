//! The posterior that sees nothing: its mean and standard deviation are parameters.

use bochner_numerics::check::random;
use bochner_spectral::{Error, UnconditionalPosterior, unconditional_init};
use ndarray::{Array2, Array3, Axis};

fn posterior<'a>(mu: &'a Array2<f64>, s: &'a Array2<f64>) -> UnconditionalPosterior<'a, f64> {
    UnconditionalPosterior {
        mu: mu.view(),
        log_sigma: s.view(),
    }
}

#[test]
fn every_example_has_the_same_posterior() {
    let [mu, log_sigma]: [Array2<f64>; 2] = ["mu", "log sigma"].map(|name| random((2, 3), name));
    let shared = posterior(&mu, &log_sigma).infer(3).unwrap();
    assert_eq!(shared.mu.dim(), (3, 2, 3));
    for b in 0..3 {
        assert_eq!(shared.mu.index_axis(Axis(0), b), mu);
        assert_eq!(shared.log_sigma.index_axis(Axis(0), b), log_sigma);
    }
    assert!(posterior(&mu, &log_sigma).infer(0).unwrap().mu.is_empty());
}

#[test]
fn what_does_not_fit_is_named() {
    let (two, three): (Array2<f64>, Array2<f64>) = (Array2::zeros((2, 3)), Array2::zeros((3, 3)));
    let named = |error: Error, text: &str| {
        assert!(error.to_string().starts_with(text), "{error}");
    };
    let error = posterior(&two, &three).infer(1).unwrap_err();
    named(error, "`log_sigma` has shape [3, 3]");
    let none = Array2::zeros((0, 3));
    named(
        posterior(&none, &none).infer(1).unwrap_err(),
        "`heads` is 0",
    );
    let (right, short) = (Array3::zeros((4, 2, 3)), Array3::zeros((3, 2, 3)));
    let error = posterior(&two, &two).infer_vjp(right.view(), short.view());
    named(error.unwrap_err(), "`cotangent of log_sigma`");
    named(unconditional_init(2, 3, 0.0).unwrap_err(), "`prior_std`");
}
