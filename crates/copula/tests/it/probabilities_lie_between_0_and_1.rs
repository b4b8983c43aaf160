//! Every function that takes a probability refuses one below 0 or above 1, and names its place.

use bochner_copula::{
    Error, GaussianCopula, Lattice, StudentsTCopula, copula_log_density, copula_log_density_vjp,
    students_t_log_density_vjp,
};
use bochner_numerics::{ArgumentError, Seed};
use ndarray::{Array2, array};

const OUTSIDE: [f64; 5] = [-0.1, -f64::MIN_POSITIVE, 1.0 + f64::EPSILON, 7.0, f64::NAN];

fn copulas() -> (GaussianCopula, StudentsTCopula) {
    let r = array![[1.0, 0.6], [0.6, 1.0]];
    let gaussian = GaussianCopula::from_correlation(r.view()).unwrap();
    let students_t = StudentsTCopula::new(gaussian.clone(), 4.0).unwrap();
    (gaussian, students_t)
}

/// Whether a value is that of a probability that was given, NaN included.
fn same(got: f64, given: f64) -> bool {
    got.to_bits() == given.to_bits()
}

#[test]
fn densities_fits_and_gradients_refuse_others() {
    let (gaussian, students_t) = copulas();
    let factor = gaussian.factor();
    let g = array![1.0, 1.0];
    // The ends of the interval are no uniform scores either.
    for p in OUTSIDE.into_iter().chain([0.0, 1.0]) {
        let u: Array2<f64> = array![[0.5, 0.5], [0.3, p]];
        let u = u.view();
        let refusals = [
            ("log density", copula_log_density(u, factor).err()),
            (
                "gradient",
                copula_log_density_vjp(u, factor, g.view()).err(),
            ),
            ("Gaussian log density", gaussian.log_density(u).err()),
            ("Gaussian density", gaussian.density(u).err()),
            (
                "maximum likelihood",
                GaussianCopula::fit_maximum_likelihood(u).err(),
            ),
            ("t log density", students_t.log_density(u).err()),
            ("t density", students_t.density(u).err()),
            (
                "t gradient",
                students_t_log_density_vjp(u, factor, 4.0, g.view()).err(),
            ),
        ];
        for (name, error) in refusals {
            let refused = matches!(
                error,
                Some(Error::Score { row: 1, coordinate: 1, got }) if same(got, p)
            );
            assert!(refused, "{name} of {p}: {error:?}");
        }
    }
}

#[test]
fn conditions_and_distribution_functions_refuse_others() {
    let (gaussian, students_t) = copulas();
    let mut rng = Seed::new(1).stream("draws");
    let lattice = Lattice::default();
    for p in OUTSIDE {
        let (given, u) = ([(1, p)], array![0.5, p]);
        let refusals = [
            (
                "given",
                gaussian.conditional_sample(&given, 1, &mut rng).err(),
            ),
            (
                "given",
                students_t.conditional_sample(&given, 1, &mut rng).err(),
            ),
            ("u", gaussian.cdf(u.view(), lattice, &mut rng).err()),
            ("u", students_t.cdf(u.view(), lattice, &mut rng).err()),
        ];
        for (argument, error) in refusals {
            let refused = matches!(
                &error,
                Some(Error::Argument(ArgumentError::OutOfRange { name, .. }))
                    if *name == format!("coordinate 1 of {argument}")
            );
            assert!(refused, "{argument} of {p}: {error:?}");
        }
    }
}
