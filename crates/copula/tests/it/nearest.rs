//! The correlation matrix nearest to a symmetric matrix.

use bochner_copula::nearest_correlation;
use bochner_dense::symmetric_eigenvalues;
use bochner_numerics::{Seed, check, standard_normal};
use ndarray::{Array2, array};

fn random(size: usize) -> Array2<f64> {
    let b: Array2<f64> = check::random((size, size), "matrix");
    0.5 * (&b + &b.t())
}

fn distance(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    (a - b).iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// The error of the eigenvalues of a correlation matrix.
fn rounding(a: &Array2<f64>) -> f64 {
    32.0 * a.nrows() as f64 * f64::EPSILON
}

#[test]
fn the_result_is_a_correlation_matrix_and_its_own_nearest() {
    for (size, smallest) in [(2, 0.0), (3, 0.0), (6, 1e-6), (8, 0.1)] {
        let r = nearest_correlation(random(size).view(), smallest).unwrap();
        assert!(r.diag().iter().all(|&x| x == 1.0));
        assert_eq!(r, r.t());
        assert!(symmetric_eigenvalues(r.view()).unwrap()[0] >= smallest - rounding(&r));
        assert_eq!(nearest_correlation(r.view(), smallest).unwrap(), r);
    }
}

#[test]
fn no_correlation_matrix_nearby_is_nearer() {
    let a = random(5);
    let r = nearest_correlation(a.view(), 0.0).unwrap();
    let best = distance(&a, &r);
    for seed in 0..50 {
        let mut stream = Seed::new(seed).stream("other");
        let noise = || 0.05 * standard_normal::<f64>(&mut stream);
        let noise = Array2::from_shape_simple_fn((5, 5), noise);
        let other = nearest_correlation((&r + &noise + noise.t()).view(), 0.0).unwrap();
        assert!(distance(&a, &other) >= best - 1e-8);
    }
}

#[test]
fn highams_example_in_closed_form() {
    // By symmetry [[1, x, y], [x, 1, x], [y, x, 1]], singular: 2 x^2 = 1 + y. Minimising
    // 4 (1 - x)^2 + 2 y^2 along it gives 4 x^3 - x - 1 = 0.
    let a = array![[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]];
    let r = nearest_correlation(a.view(), 0.0).unwrap();
    let mut x = 0.76_f64;
    for _ in 0..5 {
        x -= (4.0 * x.powi(3) - x - 1.0) / (12.0 * x * x - 1.0);
    }
    assert!((r[[0, 1]] - x).abs() < 1e-9 && (r[[0, 2]] - (2.0 * x * x - 1.0)).abs() < 1e-9);
}

/// By symmetry the nearest matrix to one of equal correlations has equal correlations.
#[test]
fn two_hundred_variables_have_a_nearest_matrix() {
    let size = 200;
    let lowest = -1.0 / (size - 1) as f64;
    let of = |r: f64| Array2::from_shape_fn((size, size), |(i, j)| if i == j { 1.0 } else { r });
    let got = nearest_correlation(of(2.0 * lowest).view(), 0.0).unwrap();
    assert!(distance(&got, &of(lowest)) < 1e-6, "{}", got[[0, 1]]);
    assert!(symmetric_eigenvalues(got.view()).unwrap()[0] >= -rounding(&got));
}

#[test]
fn what_is_not_symmetric_or_not_in_range_is_refused() {
    let skew = nearest_correlation(array![[1.0, 0.1], [0.2, 1.0]].view(), 0.0);
    assert!(skew.unwrap_err().to_string().contains("must be symmetric"));
    for smallest in [-0.1, 1.0, f64::NAN] {
        let got = nearest_correlation(Array2::eye(2).view(), smallest);
        assert!(got.unwrap_err().to_string().starts_with("`smallest` is"));
    }
}
