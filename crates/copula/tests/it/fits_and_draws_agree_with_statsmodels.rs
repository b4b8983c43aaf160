//! Fits, rank correlations and draws agree with scipy and statsmodels, whose results are kept
//! beside this file with their versions and calls.

use bochner_copula::GaussianCopula;
use bochner_numerics::Seed;
use ndarray::{Array2, ArrayView2};
use serde::Deserialize;

#[derive(Deserialize)]
struct Reference {
    correlation: Vec<Vec<f64>>,
    x: Vec<Vec<f64>>,
    kendall: Vec<Vec<f64>>,
    normal_scores: Vec<Vec<f64>>,
    tau: Vec<Vec<f64>>,
    rho: Vec<Vec<f64>>,
    u: Vec<Vec<f64>>,
    cdf: Vec<f64>,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("fits_and_draws.json")).unwrap()
}

fn matrix(rows: &[Vec<f64>]) -> Array2<f64> {
    Array2::from_shape_fn((rows.len(), rows[0].len()), |(i, j)| rows[i][j])
}

fn assert_close(got: ArrayView2<f64>, want: &[Vec<f64>]) {
    let off = &got - &matrix(want);
    assert!(off.iter().all(|o| o.abs() < 1e-12), "{off}");
}

#[test]
fn fits() {
    let reference = reference();
    let x = matrix(&reference.x);
    let fitted = GaussianCopula::fit_kendall(x.view()).unwrap().copula;
    assert_close(fitted.correlation(), &reference.kendall);
    let fitted = GaussianCopula::fit_normal_scores(x.view()).unwrap().copula;
    assert_close(fitted.correlation(), &reference.normal_scores);
}

#[test]
fn rank_correlations() {
    let reference = reference();
    let correlation = matrix(&reference.correlation);
    let copula = GaussianCopula::from_correlation(correlation.view()).unwrap();
    assert_close(copula.kendall_tau().view(), &reference.tau);
    assert_close(copula.spearman_rho().view(), &reference.rho);
}

#[test]
fn draws_fall_below_a_point_as_often_as_the_distribution_says() {
    let reference = reference();
    let correlation = matrix(&reference.correlation);
    let copula = GaussianCopula::from_correlation(correlation.view()).unwrap();
    let count = 200_000;
    let draws = copula.sample(count, &mut Seed::new(3).stream("draws"));
    for (u, want) in reference.u.iter().zip(&reference.cdf) {
        let below = |draw: &ndarray::ArrayView1<f64>| draw.iter().zip(u).all(|(x, u)| x <= u);
        let rows = draws.rows().into_iter();
        let share = rows.filter(below).count() as f64 / count as f64;
        let error = (want * (1.0 - want) / count as f64).sqrt();
        assert!((share - want).abs() < 4.0 * error, "{share} {want}");
    }
}
