//! Draws from a joint distribution, with and without some coordinates given.

use crate::testing::{Broken, of_pair};
use bochner_copula::{Error, Joint, Marginal};
use bochner_numerics::Seed;
use statrs::distribution::{Gamma, Normal, Uniform};

/// Means 1 and -3, standard deviations 2 and 1/2, correlation -0.6.
fn normals() -> Joint<Normal> {
    let marginals = [(1.0, 2.0), (-3.0, 0.5)].map(|(m, s)| Normal::new(m, s).unwrap());
    Joint::new(of_pair(-0.6), marginals.into()).unwrap()
}

#[test]
fn draws_have_the_moments_of_the_normal_distribution() {
    let mut rng = Seed::new(1).stream("draws");
    let n = 20_000;
    let z = normals().sample(n, &mut rng).unwrap();
    let (x, y) = ((&z.column(0) - 1.0) / 2.0, (&z.column(1) + 3.0) / 0.5);
    let error = 5.0 / (n as f64).sqrt();
    assert!(x.mean().unwrap().abs() < error && y.mean().unwrap().abs() < error);
    assert!(((&x * &y).mean().unwrap() + 0.6).abs() < 1.2 * error);
    assert!(((&x * &x).mean().unwrap() - 1.0).abs() < 1.5 * error);
}

#[test]
fn conditional_draws_follow_the_regression_line() {
    let mut rng = Seed::new(1).stream("draws");
    let n = 20_000;
    let z = normals()
        .conditional_sample(&[(0, 5.0)], n, &mut rng)
        .unwrap();
    assert!(z.column(0).iter().all(|&z| z == 5.0));
    let y = (&z.column(1) + 3.0) / 0.5;
    assert!((y.mean().unwrap() + 1.2).abs() < 5.0 * 0.8 / (n as f64).sqrt());
    assert!((y.var(1.0) / 0.64 - 1.0).abs() < 0.05);
}

#[test]
fn what_cannot_be_given_is_refused() {
    let mut rng = Seed::new(1).stream("draws");
    let mut given = |at| {
        normals()
            .conditional_sample(&[at], 1, &mut rng)
            .unwrap_err()
    };
    let missing = given((2, 0.0)).to_string();
    assert!(missing.starts_with("`given` holds the index 2, but must stay below 2"));
    let infinite = given((1, f64::INFINITY)).to_string();
    assert!(
        infinite.starts_with("`coordinate 1 of given` is inf"),
        "{infinite}"
    );
}

#[test]
fn values_outside_a_support_cannot_be_given() {
    let marginals: Vec<Box<dyn Marginal>> = vec![
        Box::new(Gamma::new(2.0, 1.0).unwrap()),
        Box::new(Uniform::new(0.0, 1.0).unwrap()),
    ];
    let joint = Joint::new(of_pair(0.5), marginals).unwrap();
    let mut rng = Seed::new(1).stream("draws");
    let mut given = |at| joint.conditional_sample(&[at], 1, &mut rng);
    let (coordinate, got, low, high) = (0, -5.0, 0.0, f64::INFINITY);
    let outside = Error::Support {
        coordinate,
        got,
        low,
        high,
    };
    assert_eq!(given((0, -5.0)), Err(outside));
    for wrong in [(1, 7.0), (1, -1e-300), (1, 1.0_f64.next_up())] {
        assert!(matches!(
            given(wrong),
            Err(Error::Support { coordinate: 1, .. })
        ));
    }
    assert!(given((0, 5.0)).is_ok() && given((1, 0.0)).is_ok() && given((1, 1.0)).is_ok());
}

#[test]
fn a_marginal_without_probabilities_has_no_draws() {
    let marginals: Vec<Box<dyn Marginal>> =
        vec![Box::new(Normal::new(0.0, 1.0).unwrap()), Box::new(Broken)];
    let joint = Joint::new(of_pair(0.5), marginals).unwrap();
    let mut rng = Seed::new(1).stream("draws");
    let drawn = joint.sample(3, &mut rng);
    assert!(matches!(drawn, Err(Error::Marginal { coordinate: 1, got, .. }) if got.is_nan()));
    assert!(Broken.at_score(1.0).is_nan());
    let drawn = joint.conditional_sample(&[(0, 0.3)], 3, &mut rng);
    assert!(matches!(drawn, Err(Error::Marginal { coordinate: 1, .. })));
}
