//! Student's t copula agrees with statsmodels and scipy, whose results are kept beside this file with their versions
//! and calls.

use bochner_copula::{
    GaussianCopula, Lattice, StudentsTCopula, kendall_tau_b, students_t_log_density_vjp,
};
use bochner_numerics::check::assert_gradient;
use bochner_numerics::{Seed, finite_difference, relative_error};
use ndarray::{Array2, array, aview1};
use serde::Deserialize;

#[derive(Deserialize)]
struct Reference {
    correlation: Vec<Vec<f64>>,
    u: Vec<Vec<f64>>,
    rows: Vec<Row>,
    x: Vec<Vec<f64>>,
    freedom: f64,
}

#[derive(Deserialize)]
struct Row {
    freedom: f64,
    log_density: Vec<f64>,
    cdf: Vec<f64>,
    tail_dependence: f64,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("students_t.json")).unwrap()
}

fn matrix(rows: &[Vec<f64>]) -> Array2<f64> {
    Array2::from_shape_fn((rows.len(), rows[0].len()), |(i, j)| rows[i][j])
}

fn copula(freedom: f64) -> StudentsTCopula {
    let normal = GaussianCopula::from_correlation(matrix(&reference().correlation).view());
    StudentsTCopula::new(normal.unwrap(), freedom).unwrap()
}

#[test]
fn densities_probabilities_and_tail_dependence() {
    let reference = reference();
    let u = matrix(&reference.u);
    let mut rng = Seed::new(1).stream("shifts");
    for row in reference.rows {
        let copula = copula(row.freedom);
        let got = copula.log_density(u.view()).unwrap();
        for (got, want) in got.iter().zip(&row.log_density) {
            assert!((got - want).abs() < 1e-9, "{}: {got} {want}", row.freedom);
        }
        let dependence = copula.tail_dependence()[[0, 1]];
        assert!((dependence - row.tail_dependence).abs() < 1e-12);
        for (u, want) in [1, 3, 4].map(|i| u.row(i)).iter().zip(&row.cdf) {
            let got = copula.cdf(*u, Lattice::default(), &mut rng).unwrap();
            assert!(
                (got.value - want).abs() < 1.5 * got.error + 1e-5,
                "{got:?} {want}"
            );
            assert!(got.error < 1e-3);
        }
    }
}

#[test]
fn the_degrees_of_freedom_are_the_most_likely() {
    let reference = reference();
    let fitted = StudentsTCopula::fit(matrix(&reference.x).view()).unwrap();
    let got = fitted.freedom();
    assert!(
        (got / reference.freedom - 1.0).abs() < 1e-5,
        "{got} {}",
        reference.freedom
    );
}

#[test]
fn gradients_agree_with_finite_differences() {
    let u = array![[0.2, 0.5, 0.9], [0.8, 0.35, 0.66]];
    let factor = array![[1.3, 0.0, 0.0], [-0.4, 0.7, 0.0], [0.9, 0.5, 1.1]];
    let g = array![0.7, -1.4];
    let with = |freedom: f64, u: ndarray::ArrayView2<f64>, factor: ndarray::ArrayView2<f64>| {
        let normal = GaussianCopula::from_factor(factor).unwrap();
        let copula = StudentsTCopula::new(normal, freedom).unwrap();
        copula.log_density(u).unwrap().dot(&g)
    };
    let value =
        |u: ndarray::ArrayView2<f64>, factor: ndarray::ArrayView2<f64>| with(3.5, u, factor);
    let got = students_t_log_density_vjp(u.view(), factor.view(), 3.5, g.view()).unwrap();
    // The scores are divided by 20 so that the step of the differences stays in the unit interval.
    assert_gradient(&(&got.u / 20.0), &(&u * 20.0), |u| {
        value((&u / 20.0).view(), factor.view())
    });
    assert_gradient(&got.factor, &factor, |factor| value(u.view(), factor));
    for (freedom, extreme) in [(0.7, 0.2), (3.5, 1e-12), (40.0, 0.999_999)] {
        let mut u = u.clone();
        u[[0, 1]] = extreme;
        let got = students_t_log_density_vjp(u.view(), factor.view(), freedom, g.view()).unwrap();
        let want = finite_difference(&[freedom], |freedom| {
            with(freedom[0], u.view(), factor.view())
        });
        assert!(
            relative_error(&[got.freedom], &want) < 1e-6,
            "{} {want:?}",
            got.freedom
        );
    }
}

#[test]
fn draws_have_uniform_marginals_kendalls_tau_and_their_degrees_of_freedom() {
    let (copula, n) = (copula(3.0), 20_000);
    let u = copula.sample(n, &mut Seed::new(1).stream("draws"));
    let bound = 5.0 / (n as f64).sqrt();
    for (m, column) in u.columns().into_iter().enumerate() {
        for share in [0.05, 0.5, 0.9] {
            let below = column.iter().filter(|u| **u < share).count() as f64 / n as f64;
            assert!((below - share).abs() < bound, "{m} {share}: {below}");
        }
    }
    for (j, k) in [(0, 1), (0, 2), (1, 2)] {
        let got = kendall_tau_b(u.column(j), u.column(k)).unwrap();
        assert!((got - copula.kendall_tau()[[j, k]]).abs() < bound);
    }
    let fitted = StudentsTCopula::fit(u.view()).unwrap().freedom();
    assert!((fitted / 3.0 - 1.0).abs() < 0.15, "{fitted}");
}

/// Given one score y of Student's t, the other score of a pair is r y + sqrt((nu + y^2)(1 - r^2) / (nu + 1)) times Student's
/// t with one more degree of freedom.
#[test]
fn conditional_draws_are_students_t_with_one_more_degree_of_freedom() {
    let (r, freedom, n) = (0.6, 3.0, 40_000);
    let normal = GaussianCopula::from_correlation(array![[1.0, r], [r, 1.0]].view()).unwrap();
    let copula = StudentsTCopula::new(normal, freedom).unwrap();
    let given = 0.95;
    let mut rng = Seed::new(2).stream("draws");
    let u = copula
        .conditional_sample(&[(1, given)], n, &mut rng)
        .unwrap();
    assert!(u.column(1).iter().all(|u| *u == given));
    // Quantiles of Student's t: scipy.stats.t.ppf(.95, 3), t.ppf([.2, .5, .9], 4).
    let y: f64 = 2.3533634348018264;
    let scale = ((freedom + y * y) * (1.0 - r * r) / (freedom + 1.0)).sqrt();
    for (share, t) in [(0.2, -0.9409645751), (0.5, 0.0), (0.9, 1.5332062741)] {
        let bound = r * y + scale * t;
        let limit = bochner_copula::Univariate::StudentsT {
            location: 0.0,
            scale: 1.0,
            freedom,
        };
        let limit = bochner_copula::Marginal::log_tails(&limit, bound)
            .lower
            .exp();
        let below = u.column(0).iter().filter(|u| **u < limit).count() as f64 / n as f64;
        assert!(
            (below - share).abs() < 5.0 * 0.5 / (n as f64).sqrt(),
            "{share}: {below}"
        );
    }
}

#[test]
fn many_degrees_of_freedom_give_the_gaussian_copula() {
    let u = matrix(&reference().u);
    let (t, gaussian) = (copula(1e9), copula(1e9).normal().clone());
    let difference = t.log_density(u.view()).unwrap() - gaussian.log_density(u.view()).unwrap();
    assert!(difference.iter().all(|d| d.abs() < 1e-6), "{difference}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let normal = copula(1.0).normal().clone();
    for freedom in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = StudentsTCopula::new(normal.clone(), freedom).unwrap_err();
        assert!(error.to_string().starts_with("`freedom` is"), "{error}");
    }
    let outside = copula(2.0)
        .log_density(array![[0.5, 1.0, 0.5]].view())
        .unwrap_err();
    assert!(outside.to_string().contains("coordinate 1"), "{outside}");
    let mut rng = Seed::new(1).stream("shifts");
    let wrong = copula(2.0).cdf(aview1(&[0.5, 1.5, 0.5]), Lattice::default(), &mut rng);
    assert!(
        wrong
            .unwrap_err()
            .to_string()
            .starts_with("`coordinate 1 of u` is 1.5")
    );
    assert!(StudentsTCopula::fit(array![[0.1, 0.2]].view()).is_err());
}
