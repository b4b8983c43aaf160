//! The correlation matrix of greatest likelihood.

use bochner_copula::GaussianCopula;
use bochner_numerics::Seed;
use ndarray::{Array2, ArrayView2, array};

fn likelihood_of(r: ArrayView2<f64>, u: &Array2<f64>) -> f64 {
    let copula = GaussianCopula::from_correlation(r).unwrap();
    copula.log_density(u.view()).unwrap().sum()
}

#[test]
fn no_matrix_nearby_is_more_likely() {
    let r = array![[1.0, 0.8, -0.4], [0.8, 1.0, 0.1], [-0.4, 0.1, 1.0]];
    let copula = GaussianCopula::from_correlation(r.view()).unwrap();
    let u = copula.sample(60, &mut Seed::new(4).stream("scores"));
    let fit = GaussianCopula::fit_maximum_likelihood(u.view()).unwrap();
    let best = likelihood_of(fit.copula.correlation(), &u);
    for (j, k) in [(0, 1), (0, 2), (1, 2)] {
        for change in [-1e-4, 1e-4] {
            let mut other = fit.copula.correlation().to_owned();
            other[[j, k]] += change;
            other[[k, j]] += change;
            assert!(likelihood_of(other.view(), &u) < best);
        }
    }
}

#[test]
fn fewer_rows_than_coordinates_give_a_copula() {
    let u = array![[0.1, 0.2, 0.9], [0.6, 0.7, 0.3]];
    let fit = GaussianCopula::fit_maximum_likelihood(u.view()).unwrap();
    assert!(fit.smallest_eigenvalue >= 0.9e-6);
}
