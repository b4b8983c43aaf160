//! Jitter: a small number on the diagonal of a covariance matrix, against indefiniteness by rounding.

use crate::testing::{config, scaled_rbf};
use bochner_gp::{Error, GaussianProcessConfig, Jitter, MultivariateNormal};
use bochner_numerics::Seed;
use ndarray::array;

/// The jitter that a draw from two values with this covariance needs.
fn used(covariance: f64, first: f64, last: f64) -> Result<f64, Error> {
    let pair = MultivariateNormal {
        mean: array![0.0, 0.0],
        covariance: array![[1.0, covariance], [covariance, 1.0]],
    };
    let jitter = Jitter::Escalating { first, last };
    let drawn = pair.sample(1, jitter, &mut Seed::new(1).stream("draws"));
    Ok(drawn?.jitter)
}

#[test]
fn jitter_is_raised_as_far_as_needed_and_no_further() {
    assert!((used(1.0 + 5e-6, 1e-8, 1.0).unwrap() - 1e-5).abs() < 1e-15);
    // Ten times the last value but one is a little more than the last.
    for (first, last) in [(1e-8, 1e-6), (3e-10, 3e-4)] {
        let error = used(1.5, first, last).unwrap_err();
        assert!(
            matches!(error, Error::NotPositiveDefinite { jitter, row: 1, pivot, .. }
            if jitter == last && pivot < 0.0)
        );
    }
}

#[test]
fn values_that_cannot_stand_are_named() {
    let of = |jitter| GaussianProcessConfig {
        jitter,
        ..config(scaled_rbf(1.0, 1.0), 0.0, 0.1)
    };
    let named = |jitter: Jitter, name: &str| {
        let said = of(jitter).build().unwrap_err().to_string();
        assert!(said.starts_with(&format!("`{name}` is")), "{said}");
    };
    named(Jitter::Fixed(-1e-9), "jitter");
    named(Jitter::Fixed(f64::NAN), "jitter");
    let escalating = |first, last| Jitter::Escalating { first, last };
    named(escalating(0.0, 1.0), "jitter.first");
    named(escalating(1e-6, 1e-8), "jitter.last");
    named(escalating(1e-6, f64::INFINITY), "jitter.last");
    assert!(of(escalating(0.5, 0.5)).build().is_ok());
}
