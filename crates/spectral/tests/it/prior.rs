//! The prior of the noise.

use bochner_numerics::Seed;
use bochner_numerics::check::{assert_gradient, random};
use bochner_spectral::Prior;
use ndarray::{Array2, array};

#[test]
fn draws_have_the_standard_deviation() {
    let mut stream = Seed::new(1).stream("noise");
    let z = Prior { std: 0.1 }.sample((50, 4, 25, 2), &mut stream);
    let variance = z.unwrap().mapv(|z: f64| z * z).mean().unwrap();
    assert!((variance - 0.01).abs() < 5e-4);
}

#[test]
fn the_density_integrates_to_one_and_its_gradient_agrees() {
    let prior = Prior { std: 0.3 };
    let grid = Array2::from_shape_fn((1201, 1), |(i, _)| (i as f64 - 600.0) * 0.005);
    let mass = prior.log_density(grid.view()).unwrap().mapv(f64::exp).sum() * 0.005;
    assert!((mass - 1.0).abs() < 1e-12);

    let z: Array2<f64> = random((3, 2), "z");
    let cotangent = array![0.7, -1.3, 2.0];
    let got = prior.log_density_vjp(z.view(), cotangent.view()).unwrap();
    assert_gradient(&got, &z, |z| prior.log_density(z).unwrap().dot(&cotangent));
}

#[test]
fn a_prior_without_width_is_refused() {
    let flat = Prior { std: 0.0 };
    let z = array![[0.0]];
    let error = flat.log_density(z.view()).unwrap_err();
    assert!(error.to_string().starts_with("`std` is 0"), "{error}");
}

#[test]
fn finite_arguments_give_no_nan() {
    let (prior, z) = (Prior { std: 1e-10 }, array![[1e300, 0.0]]);
    assert_eq!(prior.log_density(z.view()).unwrap()[0], f64::NEG_INFINITY);
    let g = prior.log_density_vjp(z.view(), array![0.0].view()).unwrap();
    assert_eq!(g, array![[0.0, 0.0]]);
}
