//! Draws from the Gaussian copula, with and without some coordinates given.

use crate::testing::of_pair;
use bochner_copula::{Error, GaussianCopula};
use bochner_numerics::{Seed, normal};
use ndarray::array;

fn copula() -> GaussianCopula {
    let r = array![[1.0, 0.8, 0.3], [0.8, 1.0, -0.1], [0.3, -0.1, 1.0]];
    GaussianCopula::from_correlation(r.view()).unwrap()
}

/// `R_ag R_gg^-1 x_g` and `R_aa - R_ag R_gg^-1 R_ga` of one coordinate given two.
#[test]
fn conditional_moments_are_those_of_the_normal_distribution() {
    let given = [(2, 1.5), (0, -0.5)];
    let mut rng = Seed::new(5).stream("conditional");
    let n = 40_000;
    let scores = given.map(|(at, x)| (at, normal::cdf(x)));
    let u = copula().conditional_sample(&scores, n, &mut rng).unwrap();
    let x = u.mapv(normal::quantile);
    let inverse = 1.0 / (1.0 - 0.3 * 0.3);
    let weights = [(0.8 - 0.3 * -0.1) * inverse, (-0.1 - 0.3 * 0.8) * inverse];
    let mean = weights[0] * -0.5 + weights[1] * 1.5;
    let variance = 1.0 - weights[0] * 0.8 - weights[1] * -0.1;
    let x = x.column(1);
    let error = 5.0 * (variance / n as f64).sqrt();
    assert!((x.mean().unwrap() - mean).abs() < error);
    assert!((x.var(1.0) / variance - 1.0).abs() < 5.0 * (2.0 / n as f64).sqrt());
}

#[test]
fn with_nothing_given_the_draws_are_those_of_sample() {
    let stream = || Seed::new(8).stream("draws");
    let free = copula().sample(50, &mut stream());
    let given = copula().conditional_sample(&[], 50, &mut stream()).unwrap();
    assert_eq!(free, given);
}

#[test]
fn with_everything_given_nothing_is_left_to_draw() {
    let given = [(0, 0.2), (1, 0.3), (2, 0.4)];
    let mut rng = Seed::new(8).stream("draws");
    let u = copula().conditional_sample(&given, 2, &mut rng).unwrap();
    assert_eq!(u, array![[0.2, 0.3, 0.4], [0.2, 0.3, 0.4]]);
}

#[test]
fn extreme_conditions_stay_inside_the_unit_interval() {
    let copula = of_pair(0.999_999);
    let mut rng = Seed::new(2).stream("draws");
    for given in [f64::from_bits(1), 1.0 - f64::EPSILON / 2.0] {
        let u = copula
            .conditional_sample(&[(0, given)], 20, &mut rng)
            .unwrap();
        assert!(u.iter().all(|&u| u > 0.0 && u < 1.0));
    }
}

#[test]
fn values_that_contradict_a_degenerate_factor_do_not_give_nan() {
    let factor = array![[1.0, 0.0, 0.0], [1.0, 1e-300, 0.0], [0.0, 1.0, 1e-300]];
    let copula = GaussianCopula::from_factor(factor.view()).unwrap();
    let mut rng = Seed::new(2).stream("draws");
    let given = [(0, 1e-300), (1, 0.9)];
    let u = copula.conditional_sample(&given, 5, &mut rng).unwrap();
    assert!(u.iter().all(|&u| u > 0.0 && u < 1.0));
}

#[test]
fn coordinates_that_do_not_exist_or_repeat_are_refused() {
    let mut rng = Seed::new(2).stream("draws");
    let mut call = |given: &[(usize, f64)]| copula().conditional_sample(given, 1, &mut rng);
    let missing = call(&[(3, 0.5)]).unwrap_err().to_string();
    assert!(missing.starts_with("`given` holds the index 3, but must stay below 3"));
    let coordinate = 1;
    assert_eq!(
        call(&[(1, 0.5), (1, 0.6)]),
        Err(Error::Repeated { coordinate })
    );
    let outside = call(&[(1, 0.0)]).unwrap_err().to_string();
    assert_eq!(
        outside,
        "`coordinate 1 of given` is 0, but must be strictly between 0 and 1"
    );
}
