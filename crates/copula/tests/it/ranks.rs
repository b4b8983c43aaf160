//! Statistics of ranks: uniform scores and Kendall's tau.

use bochner_copula::{Error, kendall_tau_b, pseudo_observations};
use bochner_numerics::Seed;
use ndarray::{Array2, array, aview1};
use rand::Rng;

/// The definition, pair by pair.
fn by_definition(x: &[f64], y: &[f64]) -> f64 {
    let sign = |a: f64, b: f64| f64::from(i8::from(a > b) - i8::from(a < b));
    let (mut balance, mut by_x, mut by_y) = (0.0, 0.0, 0.0);
    for i in 0..x.len() {
        for j in 0..i {
            let (a, b) = (sign(x[i], x[j]), sign(y[i], y[j]));
            balance += a * b;
            by_x += a * a;
            by_y += b * b;
        }
    }
    balance / f64::sqrt(by_x * by_y)
}

#[test]
fn the_quick_count_is_the_definition() {
    let mut rng = Seed::new(4).stream("ties");
    for (n, values) in [(2, 50), (3, 4), (17, 3), (60, 8), (61, 1000)] {
        let mut draw = || -> Vec<f64> {
            (0..n)
                .map(|_| f64::from(rng.gen_range(0..values)))
                .collect()
        };
        let (x, y) = (draw(), draw());
        let is_constant = |x: &[f64]| x.iter().all(|&value| value == x[0]);
        match kendall_tau_b(aview1(&x), aview1(&y)) {
            Ok(got) => assert!((got - by_definition(&x, &y)).abs() < 1e-14, "{n} {values}"),
            Err(error) => assert!(is_constant(&x) || is_constant(&y), "{error}"),
        }
    }
}

#[test]
fn ranks_do_not_see_monotone_transformations() {
    let x = array![[0.3, -4.0], [2.0, 8.0], [-1.0, 8.0], [0.0, 0.5]];
    let y = x.mapv(|x: f64| x.exp());
    let u = pseudo_observations(x.view()).unwrap();
    assert_eq!(u, pseudo_observations(y.view()).unwrap());
    assert_eq!(u.column(0).to_vec(), [0.6, 0.8, 0.2, 0.4]);
    assert_eq!(u.column(1).to_vec(), [0.2, 0.7, 0.7, 0.4]);
}

#[test]
fn what_has_no_ranks_is_refused() {
    let nan = array![[1.0], [f64::NAN]];
    let got = pseudo_observations(nan.view());
    assert!(
        got.unwrap_err()
            .to_string()
            .starts_with("`x` is NaN at [1, 0]")
    );
    let none = pseudo_observations(Array2::zeros((0, 2)).view());
    assert!(none.unwrap_err().to_string().contains("no elements"));
    let tau = |x: &[f64], y: &[f64]| kendall_tau_b(aview1(x), aview1(y)).unwrap_err();
    assert_eq!(tau(&[1.0], &[1.0]), Error::TooFew { got: 1 });
    assert_eq!(tau(&[1.0, 2.0], &[3.0, 3.0]), Error::Constant { column: 1 });
    let short = tau(&[1.0, 2.0], &[3.0]).to_string();
    assert!(short.starts_with("`y` has length 1, but must have length 2"));
    let nan = tau(&[1.0, f64::NAN], &[3.0, 1.0]).to_string();
    assert!(nan.starts_with("`x` is NaN at [1]"));
}
