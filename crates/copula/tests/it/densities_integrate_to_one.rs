//! The densities of the copula and of joint distributions integrate to one.

use bochner_copula::{GaussianCopula, Joint, Marginal};
use bochner_numerics::normal;
use ndarray::{Array2, array};
use statrs::distribution::{Exp, Gamma, Normal};

fn copula(r: f64) -> GaussianCopula {
    GaussianCopula::from_correlation(array![[1.0, r], [r, 1.0]].view()).unwrap()
}

/// The trapezoidal rule in two dimensions, over points `at(t)` with the weights `weight(t)`, for
/// `t` from -8 to 8: it converges geometrically, as everything vanishes at the ends.
fn integral(
    points: usize,
    at: impl Fn(f64) -> (f64, f64),
    density: impl Fn(Array2<f64>) -> Vec<f64>,
) -> f64 {
    let step = 16.0 / points as f64;
    let nodes: Vec<_> = (0..=points).map(|i| at(i as f64 * step - 8.0)).collect();
    let row = |&(x, w): &(f64, f64)| {
        let grid = Array2::from_shape_fn((nodes.len(), 2), |(i, m)| [x, nodes[i].0][m]);
        let values = density(grid);
        w * values
            .iter()
            .zip(&nodes)
            .map(|(p, (_, w))| p * w)
            .sum::<f64>()
    };
    nodes.iter().map(row).sum::<f64>() * step * step
}

#[test]
fn over_the_unit_square() {
    let at = |t: f64| {
        (
            normal::cdf(t),
            (-0.5 * t * t).exp() / std::f64::consts::TAU.sqrt(),
        )
    };
    for r in [-0.7, 0.0, 0.5] {
        let copula = copula(r);
        let got = integral(160, at, |u| copula.density(u.view()).unwrap().to_vec());
        assert!((got - 1.0).abs() < 1e-9, "{r}: {got}");
    }
}

#[test]
fn over_the_plane() {
    let marginals = vec![
        Normal::new(0.5, 1.0).unwrap(),
        Normal::new(-0.5, 0.8).unwrap(),
    ];
    let joint = Joint::new(copula(0.6), marginals).unwrap();
    let got = integral(
        160,
        |t| (t, 1.0),
        |z| joint.density(z.view()).unwrap().to_vec(),
    );
    assert!((got - 1.0).abs() < 1e-9, "{got}");
}

#[test]
fn over_the_quadrant_of_positive_marginals() {
    let marginals: Vec<Box<dyn Marginal>> = vec![
        Box::new(Gamma::new(2.5, 1.5).unwrap()),
        Box::new(Exp::new(0.7).unwrap()),
    ];
    let joint = Joint::new(copula(-0.4), marginals).unwrap();
    // z = exp(t): what is cut off at the lower end has a probability of about exp(-8).
    let at = |t: f64| (t.exp(), t.exp());
    let got = integral(400, at, |z| joint.density(z.view()).unwrap().to_vec());
    assert!((got - 1.0).abs() < 1e-3, "{got}");
}
