//! Draws have uniform marginals and the rank correlations of the closed forms.

use bochner_copula::{GaussianCopula, kendall_tau_b, pseudo_observations};
use bochner_numerics::Seed;
use ndarray::{Array2, array};

const DRAWS: usize = 4000;

fn copula() -> GaussianCopula {
    let r = array![[1.0, 0.7, -0.3], [0.7, 1.0, 0.2], [-0.3, 0.2, 1.0]];
    GaussianCopula::from_correlation(r.view()).unwrap()
}

fn draws() -> Array2<f64> {
    copula().sample(DRAWS, &mut Seed::new(20).stream("draws"))
}

/// The largest distance between the empirical distribution function and the diagonal.
fn kolmogorov(mut u: Vec<f64>) -> f64 {
    u.sort_by(f64::total_cmp);
    let n = u.len() as f64;
    let steps = u.iter().enumerate();
    let apart = steps.map(|(i, u)| (u - i as f64 / n).abs().max((u - (i + 1) as f64 / n).abs()));
    apart.fold(0.0, f64::max)
}

fn pearson(x: &Array2<f64>, j: usize, k: usize) -> f64 {
    let (x, y) = (x.column(j), x.column(k));
    let (x, y) = (&x - x.mean().unwrap(), &y - y.mean().unwrap());
    x.dot(&y) / (x.dot(&x) * y.dot(&y)).sqrt()
}

#[test]
fn every_marginal_is_uniform() {
    for column in draws().columns() {
        // Exceeded with a probability of about 1e-5.
        assert!(kolmogorov(column.to_vec()) < 2.5 / (DRAWS as f64).sqrt());
    }
}

#[test]
fn rank_correlations_are_those_of_the_parameter() {
    let (u, bound) = (draws(), 5.0 / (DRAWS as f64).sqrt());
    let ranks = pseudo_observations(u.view()).unwrap();
    let (tau, rho) = (copula().kendall_tau(), copula().spearman_rho());
    for (j, k) in [(0, 1), (0, 2), (1, 2)] {
        let got = kendall_tau_b(u.column(j), u.column(k)).unwrap();
        assert!((got - tau[[j, k]]).abs() < bound);
        assert!((pearson(&ranks, j, k) - rho[[j, k]]).abs() < bound);
    }
}

#[test]
fn the_density_is_that_of_the_draws() {
    // The mean of the log density is the divergence from independence.
    let logs = copula().log_density(draws().view()).unwrap();
    let error = (logs.var(1.0) / DRAWS as f64).sqrt();
    let kl = copula().kl_to_independence();
    assert!((logs.mean().unwrap() - kl).abs() < 5.0 * error && kl > 10.0 * error);
}
