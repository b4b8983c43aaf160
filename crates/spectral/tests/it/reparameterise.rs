//! Draws from the posterior as a differentiable function of its parameters.

use bochner_numerics::check::random;
use bochner_spectral::{reparameterise, reparameterise_vjp};
use ndarray::{Array3, Array4, array};

#[test]
fn what_does_not_fit_is_named() {
    let (mu, x): (Array3<f32>, Array4<f32>) = (random((2, 1, 3), "mu"), random((2, 2, 4, 3), "x"));
    let error = reparameterise(mu.view(), mu.view(), x.view()).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("`x` has shape [2, 2, 4, 3]"), "{text}");
}

#[test]
fn finite_arguments_give_no_nan() {
    let x = array![[[[0.0, 1.0], [2.0, -2.0], [-1.0, 0.5]]]];
    for extreme in [1e300, -1e300, 720.0] {
        let (mu, log_sigma) = (array![[[extreme, 1.0]]], array![[[extreme, 800.0]]]);
        let (mu, log_sigma) = (mu.view(), log_sigma.view());
        let z = reparameterise(mu, log_sigma, x.view()).unwrap();
        assert!(z.iter().all(|z: &f64| !z.is_nan()), "{z}");
        for cotangent in [0.0, 1.0, -1e300] {
            let c = Array4::from_elem(x.raw_dim(), cotangent);
            let g = reparameterise_vjp(mu, log_sigma, x.view(), c.view()).unwrap();
            let mut all = g.mu.iter().chain(&g.log_sigma).chain(&g.x);
            assert!(all.all(|g: &f64| g.is_finite()), "{g:?}");
        }
    }
}
