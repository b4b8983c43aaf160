//! The normal distribution of several values, and draws from it.

use crate::testing::{process, scaled_rbf};
use bochner_gp::{Error, Jitter, MultivariateNormal};
use bochner_numerics::Seed;
use bochner_numerics::check::random;
use ndarray::array;

/// Mean and covariance of many draws are within five standard errors of the joint's.
fn moments_agree(joint: &MultivariateNormal) {
    let count = 20_000;
    let mut stream = Seed::new(5).stream("draws");
    let draws = joint.sample(count, Jitter::Fixed(1e-12), &mut stream);
    let values = draws.unwrap().values;
    let n = count as f64;
    let covariance = &joint.covariance;
    for i in 0..joint.mean.len() {
        let (mean, variance) = (joint.mean[i], covariance[[i, i]]);
        let off = values.column(i).sum() / n - mean;
        assert!(off.abs() < 5.0 * (variance / n).sqrt());
        for j in 0..joint.mean.len() {
            let pairs = values.column(i).into_iter().zip(values.column(j));
            let products = pairs.map(|(a, b)| (a - mean) * (b - joint.mean[j]));
            let off = products.sum::<f64>() / n - covariance[[i, j]];
            let spread = variance * covariance[[j, j]] + covariance[[i, j]].powi(2);
            assert!(off.abs() < 5.0 * (spread / n).sqrt());
        }
    }
}

#[test]
fn draws_have_the_moments_of_prior_and_posterior() {
    let process = process(scaled_rbf(1.5, 0.8), 0.7, 0.1);
    let (x, y) = (random((5, 2), "x"), random(5, "y"));
    let at = random((4, 2), "at");
    moments_agree(&process.prior(at.view()).unwrap());
    let posterior = process.condition(x.view(), y.view()).unwrap();
    moments_agree(&posterior.joint(at.view()).unwrap());
}

#[test]
fn a_seed_gives_the_same_draws_and_none_is_none() {
    let process = process(scaled_rbf(1.0, 1.0), 0.0, 0.1);
    let joint = process.prior(random((3, 1), "at").view()).unwrap();
    let draw = |count, seed| {
        let mut stream = Seed::new(seed).stream("draws");
        joint
            .sample(count, Jitter::Fixed(0.0), &mut stream)
            .unwrap()
    };
    assert_eq!(draw(4, 1), draw(4, 1));
    assert_ne!(draw(4, 1), draw(4, 2));
    assert_eq!(draw(0, 1).values.dim(), (0, 3));
}

#[test]
fn a_singular_covariance_is_refused_without_jitter_and_reported_with_it() {
    let joint = MultivariateNormal {
        mean: array![0.0, 0.0],
        covariance: array![[1.0, 1.0], [1.0, 1.0]],
    };
    let draw = |jitter| joint.sample(1, jitter, &mut Seed::new(1).stream("draws"));
    assert!(matches!(
        draw(Jitter::Fixed(0.0)),
        Err(Error::NotPositiveDefinite {
            order: 2,
            row: 1,
            pivot: 0.0,
            ..
        })
    ));
    assert_eq!(draw(Jitter::Fixed(1e-9)).unwrap().jitter, 1e-9);
    assert!(draw(Jitter::Fixed(-1.0)).is_err());
    let nowhere = MultivariateNormal {
        mean: array![0.0, f64::NAN],
        ..joint.clone()
    };
    let drawn = nowhere.sample(1, Jitter::Fixed(1e-9), &mut Seed::new(1).stream("draws"));
    assert!(matches!(drawn, Err(Error::Argument(_))));
    let short = MultivariateNormal {
        mean: array![0.0],
        ..joint.clone()
    };
    let short = short.sample(1, Jitter::Fixed(0.1), &mut Seed::new(1).stream("draws"));
    let said = short.unwrap_err().to_string();
    assert!(said.contains("`covariance` has shape [2, 2], but must have [1, 1]"));
}
