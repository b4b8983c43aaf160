//! The copula agrees with scipy, statsmodels and mpmath, whose results are kept beside this file
//! with their versions and calls.

use bochner_copula::{
    GaussianCopula, Joint, Lattice, Marginal, kendall_tau_b, pseudo_observations,
};
use bochner_numerics::Seed;
use ndarray::{Array1, Array2, Axis, aview1};
use serde::Deserialize;
use statrs::distribution::{Exp, Gamma, Normal, StudentsT};

#[derive(Deserialize)]
struct Reference {
    quantiles: Vec<(f64, f64)>,
    correlation: Vec<Vec<f64>>,
    u: Vec<Vec<f64>>,
    log_density: Vec<f64>,
    cdf: Vec<f64>,
    equicorrelated: Vec<(f64, Vec<f64>, f64)>,
    z: Vec<Vec<f64>>,
    joint_log_density: Vec<f64>,
    a: Vec<f64>,
    b: Vec<f64>,
    tau_b: f64,
    pseudo: Vec<f64>,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("scipy_and_statsmodels.json")).unwrap()
}

fn matrix(rows: &[Vec<f64>]) -> Array2<f64> {
    Array2::from_shape_fn((rows.len(), rows[0].len()), |(i, j)| rows[i][j])
}

fn copula(reference: &Reference) -> GaussianCopula {
    GaussianCopula::from_correlation(matrix(&reference.correlation).view()).unwrap()
}

#[test]
fn quantiles() {
    for (u, want) in reference().quantiles {
        let got = bochner_numerics::normal::quantile(u);
        assert!((got / want - 1.0).abs() < 1e-14, "{u:e}: {got} {want}");
    }
}

#[test]
fn log_densities() {
    let reference = reference();
    let got = copula(&reference)
        .log_density(matrix(&reference.u).view())
        .unwrap();
    for (got, want) in got.iter().zip(&reference.log_density) {
        assert!((got - want).abs() < 1e-12, "{got} {want}");
    }
}

#[test]
fn joint_log_densities() {
    let reference = reference();
    let marginals: Vec<Box<dyn Marginal>> = vec![
        Box::new(Gamma::new(2.0, 1.5).unwrap()),
        Box::new(Exp::new(0.7).unwrap()),
        Box::new(Normal::new(1.0, 2.0).unwrap()),
        Box::new(StudentsT::new(0.0, 1.0, 5.0).unwrap()),
    ];
    let joint = Joint::new(copula(&reference), marginals).unwrap();
    let got = joint.log_density(matrix(&reference.z).view()).unwrap();
    for (got, want) in got.iter().zip(&reference.joint_log_density) {
        assert!((got / want - 1.0).abs() < 1e-10, "{got} {want}");
    }
}

#[test]
fn distribution_functions() {
    let reference = reference();
    let copula = copula(&reference);
    let mut rng = Seed::new(1).stream("shifts");
    for (u, want) in reference.u.iter().zip(&reference.cdf) {
        let got = copula.cdf(aview1(u), Lattice::default(), &mut rng).unwrap();
        // The error is three standard errors; the reference has one of its own.
        let bound = 1.5 * got.error + 1e-8;
        assert!(
            (got.value - want).abs() < bound && got.error < 1e-5,
            "{got:?} {want}"
        );
    }
}

#[test]
fn distribution_functions_in_up_to_eight_dimensions() {
    let mut rng = Seed::new(1).stream("shifts");
    for (r, u, want) in reference().equicorrelated {
        let matrix =
            Array2::from_shape_fn((u.len(), u.len()), |(i, j)| if i == j { 1.0 } else { r });
        let copula = GaussianCopula::from_correlation(matrix.view()).unwrap();
        let got = copula
            .cdf(aview1(&u), Lattice::default(), &mut rng)
            .unwrap();
        assert!((got.value - want).abs() < 1.5 * got.error, "{got:?} {want}");
        assert!(got.error < 1e-3 * want, "{got:?} {want}");
    }
}

#[test]
fn ranks_with_ties() {
    let reference = reference();
    let got = kendall_tau_b(aview1(&reference.a), aview1(&reference.b)).unwrap();
    assert!((got - reference.tau_b).abs() < 1e-14);
    let a = Array1::from(reference.a).insert_axis(Axis(1));
    let got = pseudo_observations(a.view()).unwrap();
    let pairs = got.iter().zip(&reference.pseudo);
    assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-15));
}
