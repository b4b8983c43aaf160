//! Normal marginals under a Gaussian copula, as a function that can be trained through.

use bochner_copula::heads::{normal_joint_log_density, normal_joint_log_density_vjp};
use bochner_copula::{Error, GaussianCopula, Joint};
use bochner_numerics::check::assert_gradient;
use ndarray::{Array1, Array2, array};
use statrs::distribution::Normal;

type Inputs = (Array2<f64>, Array1<f64>, Array1<f64>, Array2<f64>);

/// `z`, `mu`, `sigma` and the factor.
fn inputs() -> Inputs {
    (
        array![[0.2, -1.0, 3.0], [1.5, 0.4, -2.0]],
        array![0.1, -0.3, 0.7],
        array![1.3, 0.6, 2.1],
        array![[1.3, 0.0, 0.0], [-0.4, 0.7, 0.0], [0.9, 0.5, 1.1]],
    )
}

fn value((z, mu, sigma, factor): &Inputs) -> Array1<f64> {
    normal_joint_log_density(z.view(), mu.view(), sigma.view(), factor.view()).unwrap()
}

#[test]
fn gradients_agree_with_finite_differences() {
    let g = array![0.8, -1.7];
    let (z, mu, sigma, l) = &inputs();
    let (zv, mv, sv, lv) = (z.view(), mu.view(), sigma.view(), l.view());
    let got = normal_joint_log_density_vjp(zv, mv, sv, lv, g.view()).unwrap();
    let sum = |value: Result<Array1<f64>, Error>| value.unwrap().dot(&g);
    assert_gradient(&got.z, z, |z| sum(normal_joint_log_density(z, mv, sv, lv)));
    assert_gradient(&got.mu, mu, |mu| {
        sum(normal_joint_log_density(zv, mu, sv, lv))
    });
    assert_gradient(&got.sigma, sigma, |s| {
        sum(normal_joint_log_density(zv, mv, s, lv))
    });
    assert_gradient(&got.factor, l, |l| {
        sum(normal_joint_log_density(zv, mv, sv, l))
    });
}

#[test]
fn it_is_the_joint_distribution_of_normal_marginals() {
    let point = inputs();
    let (z, mu, sigma, factor) = &point;
    let marginals = mu.iter().zip(sigma);
    let marginals = marginals
        .map(|(&m, &s)| Normal::new(m, s).unwrap())
        .collect();
    let copula = GaussianCopula::from_factor(factor.view()).unwrap();
    let want = Joint::new(copula, marginals)
        .unwrap()
        .log_density(z.view())
        .unwrap();
    let got = value(&point);
    for (got, want) in got.iter().zip(want) {
        // The precision of statrs' error function.
        assert!((got / want - 1.0).abs() < 1e-10, "{got} {want}");
    }
}

#[test]
fn no_finite_point_gives_nan() {
    let (z, mu, sigma, l) = inputs();
    for size in [1e160, 1e308] {
        let far = z.mapv(|z| size * z.signum());
        let value = value(&(far, mu.clone(), sigma.clone(), l.clone()));
        assert!(value.iter().all(|v| *v == f64::NEG_INFINITY));
    }
}

#[test]
fn shapes_and_ranges_are_checked() {
    let (z, mu, sigma, l) = inputs();
    let call = |z: &Array2<f64>, sigma: &Array1<f64>| {
        normal_joint_log_density(z.view(), mu.view(), sigma.view(), l.view()).unwrap_err()
    };
    let wide = Array2::zeros((1, 4));
    let said = call(&wide, &sigma).to_string();
    assert!(
        said.starts_with("`z` has shape [1, 4], but must have [1, 3]"),
        "{said}"
    );
    let lost = array![[0.0, f64::NAN, 0.0]];
    let said = call(&lost, &sigma).to_string();
    assert!(said.starts_with("`z`"), "{said}");
    let negative = array![1.0, -1.0, 1.0];
    assert!(call(&z, &negative).to_string().starts_with("`sigma` is -1"));
}
