//! A joint distribution: a copula over any marginals.

use crate::testing::of_pair;
use bochner_copula::{Joint, Lattice, Marginal};
use bochner_numerics::Seed;
use ndarray::{Array2, array, aview1};
use statrs::distribution::{Exp, Gamma, Normal};
use std::f64::consts::TAU;

fn normals(r: f64) -> Joint<Normal> {
    let marginals = [(1.0, 2.0), (-3.0, 0.5)].map(|(m, s)| Normal::new(m, s).unwrap());
    Joint::new(of_pair(r), marginals.into()).unwrap()
}

/// The test fails if the densities of the marginals or the copula's are left out.
#[test]
fn normal_marginals_give_the_multivariate_normal_distribution() {
    let r = -0.6_f64;
    for z in [[0.3, -2.7], [9.0, -6.0], [-30.0, 1.0], [25.0, 3.0]] {
        let (x, y) = ((z[0] - 1.0) / 2.0, (z[1] + 3.0) / 0.5);
        let rest = 1.0 - r * r;
        let square = (x * x - 2.0 * r * x * y + y * y) / rest;
        // Standard deviations 2 and 1/2: their product is one.
        let want = -0.5 * square - TAU.ln() - 0.5 * rest.ln();
        let got = normals(r).log_density(array![z].view()).unwrap()[0];
        assert!((got / want - 1.0).abs() < 1e-11, "{z:?}: {got} {want}");
    }
}

#[test]
fn every_point_inside_has_a_finite_density_and_no_other_a_positive_one() {
    let marginals: Vec<Box<dyn Marginal>> = vec![
        Box::new(Exp::new(1.0).unwrap()),
        Box::new(Gamma::new(0.5, 1.0).unwrap()),
    ];
    let joint = Joint::new(of_pair(0.999), marginals).unwrap();
    let values = [-1e300, -1.0, 0.0, 1e-300, 1.0, 50.0, 800.0, 1e300];
    for a in values {
        for b in values {
            let got = joint.log_density(array![[a, b]].view()).unwrap()[0];
            let inside = a > 0.0 && b > 0.0;
            assert_eq!(got.is_finite(), inside, "{a} {b}: {got}");
            assert!(inside || got == f64::NEG_INFINITY, "{a} {b}: {got}");
        }
    }
    for z in [-1e150, -40.0, 40.0, 1e150] {
        let got = normals(0.9).log_density(array![[z, -z]].view()).unwrap()[0];
        assert!(got.is_finite() && got < 0.0);
    }
}

/// A Gamma marginal of shape *a* has a pole of the density, x^2 (1 - a) / 2a in the score, which the copula
/// outweighs, by x^2 r^2 / 2 (1 - r^2), if it is strong enough.
#[test]
fn at_the_end_of_a_support_the_density_is_its_limit() {
    let value = |r: f64, shape: f64| {
        let marginals = vec![Gamma::new(shape, 1.0).unwrap(); 2];
        let joint = Joint::new(of_pair(r), marginals).unwrap();
        joint.log_density(array![[0.0, 1.0]].view()).unwrap()[0]
    };
    assert_eq!(value(0.9, 0.5), f64::NEG_INFINITY);
    assert_eq!(value(0.3, 0.5), f64::INFINITY);
    assert_eq!(value(0.0, 0.5), f64::INFINITY);
    assert_eq!(value(0.0, 2.0), f64::NEG_INFINITY);
    assert!((value(0.0, 1.0) + 1.0).abs() < 1e-12);
}

#[test]
fn the_distribution_function_is_the_copulas_at_the_marginals() {
    let mut rng = Seed::new(1).stream("shifts");
    let z = aview1(&[1.0, -3.0]);
    let got = normals(0.5).cdf(z, Lattice::default(), &mut rng).unwrap();
    assert!((got.value - 1.0 / 3.0).abs() <= got.error && got.error < 1e-12);
}

#[test]
fn what_does_not_fit_is_refused() {
    let few = Joint::new(of_pair(0.1), vec![Normal::new(0.0, 1.0).unwrap()]);
    let said = few.unwrap_err().to_string();
    assert!(
        said.starts_with("`marginals` has length 1, but must have length 2"),
        "{said}"
    );
    let call = |z: Array2<f64>| normals(0.1).log_density(z.view()).unwrap_err().to_string();
    assert!(call(array![[1.0]]).starts_with("`z` has shape [1, 1], but must have [1, 2]"));
    assert!(call(array![[1.0, f64::NAN]]).starts_with("`z` is NaN at [0, 1]"));
}
