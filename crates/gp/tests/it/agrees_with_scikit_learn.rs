//! Evidence, its gradient and predictions are those of scikit-learn.

use bochner_gp::{GaussianProcessConfig, Jitter};
use bochner_kernels::{
    ExpsinConfig, Kernel, Lengthscale, MaternConfig, Product, RbfConfig, ScaleConfig, Smoothness,
    Sum,
};
use ndarray::{Array1, Array2};
use serde_json::Value;

type Dynamic = Box<dyn Kernel<f64>>;

const CASES: [&str; 6] = [
    "scaled_rbf",
    "scaled_rbf_ard",
    "scaled_matern_half",
    "scaled_matern_three_halves",
    "scaled_matern_five_halves",
    "periodic_times_rbf_plus_rbf",
];

fn scale(variance: f64, base: Dynamic) -> Dynamic {
    Box::new(ScaleConfig { variance, base }.build().unwrap())
}

fn rbf(lengthscale: Lengthscale<f64>) -> Dynamic {
    Box::new(RbfConfig { lengthscale }.build().unwrap())
}

fn matern(smoothness: Smoothness, lengthscale: Lengthscale<f64>) -> Dynamic {
    let config = MaternConfig {
        smoothness,
        lengthscale,
    };
    Box::new(config.build().unwrap())
}

fn periodic_times_rbf_plus_rbf() -> Dynamic {
    let season = ExpsinConfig {
        period: 3.1,
        lengthscale: 1.3,
    };
    let season = Box::new(season.build().unwrap());
    let season = Product::of(vec![season, rbf(Lengthscale::Shared(6.0))]);
    let trend = rbf(Lengthscale::Shared(8.0));
    let parts = vec![scale(1.1, Box::new(season.unwrap())), scale(2.0, trend)];
    Box::new(Sum::of(parts).unwrap())
}

fn kernel(name: &str) -> Dynamic {
    let each = |l: &[f64]| Lengthscale::PerDimension(l.to_vec());
    let one = Lengthscale::Shared;
    match name {
        "scaled_rbf" => scale(1.7, rbf(one(1.2))),
        "scaled_rbf_ard" => scale(0.9, rbf(each(&[0.8, 1.9]))),
        "scaled_matern_half" => scale(1.3, matern(Smoothness::Half, one(1.1))),
        "scaled_matern_three_halves" => {
            scale(1.3, matern(Smoothness::ThreeHalves, each(&[1.1, 2.0])))
        }
        "scaled_matern_five_halves" => scale(1.3, matern(Smoothness::FiveHalves, one(1.6))),
        "periodic_times_rbf_plus_rbf" => periodic_times_rbf_plus_rbf(),
        _ => panic!("no kernel is called {name}"),
    }
}

/// Inputs, targets, and the inputs to predict at.
type Data = (Array2<f64>, Array1<f64>, Array2<f64>);

fn plane() -> Data {
    let x = Array2::from_shape_fn((40, 2), |(i, n)| match n {
        0 => 3.0 * (1.7 * i as f64 + 0.3).sin(),
        _ => 2.0 * (2.3 * i as f64).cos(),
    });
    let ripple = |i: usize| 0.1 * (5.1 * i as f64).cos();
    let y = (0..40).map(|i| x[[i, 0]].sin() + 0.5 * x[[i, 1]] + ripple(i));
    let at = Array2::from_shape_fn((8, 2), |(j, n)| match n {
        0 => 2.5 * (0.9 * j as f64 + 1.0).sin(),
        _ => 1.5 * (1.1 * j as f64).cos(),
    });
    (x.clone(), y.collect(), at)
}

fn line() -> Data {
    let x = Array2::from_shape_fn((40, 1), |(i, _)| {
        0.25 * i as f64 + 0.1 * (3.3 * i as f64).sin()
    });
    let y = (0..40).map(|i| {
        let t = x[[i, 0]];
        (std::f64::consts::TAU * t / 3.0).sin() + 0.2 * t + 0.1 * (5.1 * i as f64).cos()
    });
    let at = Array2::from_shape_fn((8, 1), |(j, _)| 1.5 * j as f64 - 0.4);
    (x.clone(), y.collect(), at)
}

fn numbers(value: &Value) -> Vec<f64> {
    let values = value.as_array().expect("a list").iter();
    values.map(|v| v.as_f64().expect("a number")).collect()
}

fn assert_close(name: &str, what: &str, got: impl IntoIterator<Item = f64>, want: &[f64]) {
    let got: Vec<f64> = got.into_iter().collect();
    assert_eq!(got.len(), want.len(), "{name}: {what}");
    for (g, w) in got.iter().zip(want) {
        let bound = 1e-8 * w.abs().max(1.0);
        assert!((g - w).abs() < bound, "{name}: {what}: {g} is not {w}");
    }
}

fn check(case: &Value) {
    let name = case["name"].as_str().expect("a name");
    let number = |key: &str| case[key].as_f64().expect("a number");
    let (x, y, at) = match name {
        "periodic_times_rbf_plus_rbf" => line(),
        _ => plane(),
    };
    let config = GaussianProcessConfig {
        kernel: kernel(name),
        mean: number("mean"),
        noise: number("noise"),
        jitter: Jitter::Fixed(0.0),
    };
    let process = config.build().unwrap();
    let got = process.evidence_gradient(x.view(), y.view()).unwrap();
    let want = number("log_marginal_likelihood");
    assert_close(name, "evidence", [got.evidence.log_likelihood], &[want]);
    // scikit-learn has no mean to differentiate along.
    let gradient = got.coordinates[1..].iter().copied();
    assert_close(name, "gradient", gradient, &numbers(&case["gradient"]));

    let posterior = process.condition(x.view(), y.view()).unwrap();
    let got = posterior.predict(at.view()).unwrap();
    let mean = numbers(&case["predictive_mean"]);
    assert_close(name, "mean", got.mean, &mean);
    let deviation = got.observed_variance.mapv(f64::sqrt);
    let want = numbers(&case["predictive_std"]);
    assert_close(name, "standard deviation", deviation, &want);
}

#[test]
fn agrees_with_scikit_learn() {
    let golden = include_str!("golden/sklearn.json");
    let golden: Value = serde_json::from_str(golden).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    let names: Vec<_> = cases.iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names, CASES);
    cases.iter().for_each(check);
}
