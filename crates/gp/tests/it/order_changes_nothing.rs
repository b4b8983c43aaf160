//! The order in which observations come does not matter.

use bochner_gp::{GaussianProcess, GaussianProcessConfig, Jitter};
use bochner_kernels::{Lengthscale, MaternConfig, ScaleConfig, Smoothness};
use ndarray::{Array1, Array2, Axis};
use proptest::prelude::*;

fn process() -> GaussianProcess {
    let base = MaternConfig {
        smoothness: Smoothness::FiveHalves,
        lengthscale: Lengthscale::PerDimension(vec![0.8, 1.7]),
    };
    let base = base.build().unwrap().into();
    let variance = 1.4;
    let config = GaussianProcessConfig {
        kernel: ScaleConfig { variance, base }.build().unwrap().into(),
        mean: 0.2,
        noise: 0.05,
        observation_noise: None,
        jitter: Jitter::Fixed(0.0),
    };
    config.build().unwrap()
}

fn rows() -> impl Strategy<Value = Vec<(f64, f64, f64)>> {
    prop::collection::vec((-3.0..3.0, -3.0..3.0, -2.0..2.0), 0..12)
}

fn data(rows: &[(f64, f64, f64)]) -> (Array2<f64>, Array1<f64>) {
    let x = Array2::from_shape_fn((rows.len(), 2), |(i, n)| match n {
        0 => rows[i].0,
        _ => rows[i].1,
    });
    (x, rows.iter().map(|r| r.2).collect())
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9 * (1.0 + a.abs())
}

proptest! {
    #[test]
    fn order_changes_nothing(
        (rows, shuffled) in rows().prop_flat_map(|r| (Just(r.clone()), Just(r).prop_shuffle())),
    ) {
        let process = process();
        let ((x, y), (u, v)) = (data(&rows), data(&shuffled));
        let a = process.evidence_gradient(x.view(), y.view()).unwrap();
        let b = process.evidence_gradient(u.view(), v.view()).unwrap();
        prop_assert!(close(a.evidence.log_likelihood, b.evidence.log_likelihood));
        for (a, b) in a.parameters.iter().zip(&b.parameters) {
            prop_assert!(close(*a, *b));
        }
        let at = x.select(Axis(0), &(0..rows.len().min(1)).collect::<Vec<_>>());
        let a = process.condition(x.view(), y.view()).unwrap().predict(at.view()).unwrap();
        let b = process.condition(u.view(), v.view()).unwrap().predict(at.view()).unwrap();
        for (a, b) in a.mean.iter().zip(&b.mean) {
            prop_assert!(close(*a, *b));
        }
        for (a, b) in a.latent_variance.iter().zip(&b.latent_variance) {
            prop_assert!(close(*a, *b));
        }
    }

    #[test]
    fn an_observation_more_never_makes_the_function_less_certain(rows in rows()) {
        prop_assume!(rows.len() > 1);
        let process = process();
        let ((x, y), (u, v)) = (data(&rows), data(&rows[1..]));
        let at = ndarray::array![[0.1, -0.3], [2.0, 2.5]];
        let more = process.condition(x.view(), y.view()).unwrap().predict(at.view()).unwrap();
        let less = process.condition(u.view(), v.view()).unwrap().predict(at.view()).unwrap();
        for (more, less) in more.latent_variance.iter().zip(&less.latent_variance) {
            prop_assert!(*more <= less + 1e-12);
        }
    }
}
