//! Evidence, its gradient and predictions are those of scikit-learn.

use bochner_gp::{GaussianProcess, GaussianProcessConfig, Jitter};
use bochner_kernels::{
    AnyKernel, ExpsinConfig, Lengthscale, MaternConfig, RbfConfig, ScaleConfig, Smoothness,
};
use ndarray::{Array1, Array2};
use serde_json::Value;

pub(crate) type Dynamic = AnyKernel<f64>;

const CASES: [&str; 6] = [
    "scaled_rbf",
    "scaled_rbf_ard",
    "scaled_matern_half",
    "scaled_matern_three_halves",
    "scaled_matern_five_halves",
    "periodic_times_rbf_plus_rbf",
];

pub(crate) fn scale(variance: f64, base: Dynamic) -> Dynamic {
    ScaleConfig { variance, base }.build().unwrap().into()
}

pub(crate) fn rbf(lengthscale: Lengthscale<f64>) -> Dynamic {
    RbfConfig { lengthscale }.build().unwrap().into()
}

pub(crate) fn matern(smoothness: Smoothness, lengthscale: Lengthscale<f64>) -> Dynamic {
    let config = MaternConfig {
        smoothness,
        lengthscale,
    };
    config.build().unwrap().into()
}

fn periodic_times_rbf_plus_rbf() -> Dynamic {
    let season = ExpsinConfig {
        period: 3.1,
        lengthscale: Lengthscale::Shared(1.3),
    };
    let season = season.build().unwrap() * rbf(Lengthscale::Shared(6.0));
    scale(1.1, season) + scale(2.0, rbf(Lengthscale::Shared(8.0)))
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

pub(crate) fn number(case: &Value, key: &str) -> f64 {
    case[key].as_f64().expect("a number")
}

pub(crate) fn numbers(case: &Value, key: &str) -> Vec<f64> {
    let values = case[key].as_array().expect("a list").iter();
    values.map(|v| v.as_f64().expect("a number")).collect()
}

/// The process of a case, which holds its mean and its noise.
pub(crate) fn process(case: &Value, kernel: Dynamic) -> GaussianProcess {
    let config = GaussianProcessConfig {
        kernel,
        mean: number(case, "mean"),
        noise: number(case, "noise"),
        observation_noise: None,
        jitter: Jitter::Fixed(0.0),
    };
    config.build().unwrap()
}

/// Compares with the numbers of a case within 1e-8, relative where they are larger than one.
pub(crate) fn assert_close(case: &Value, key: &str, got: impl IntoIterator<Item = f64>) {
    let want = match &case[key] {
        Value::Array(_) => numbers(case, key),
        _ => vec![number(case, key)],
    };
    let (name, got) = (&case["name"], Vec::from_iter(got));
    assert_eq!(got.len(), want.len(), "{name}: {key}");
    for (g, w) in got.iter().zip(want) {
        let bound = 1e-8 * w.abs().max(1.0);
        assert!((g - w).abs() < bound, "{name}: {key}: {g} is not {w}");
    }
}

/// Compares the evidence of all observations and its gradient.
pub(crate) fn check_evidence(
    case: &Value,
    process: &GaussianProcess,
    x: &Array2<f64>,
    y: &Array1<f64>,
) {
    let got = process.evidence_gradient(x.view(), y.view()).unwrap();
    assert_close(
        case,
        "log_marginal_likelihood",
        [got.evidence.log_likelihood],
    );
    // scikit-learn has no mean to differentiate along.
    assert_close(case, "gradient", got.coordinates[1..].iter().copied());
}

fn check(case: &Value) {
    let name = case["name"].as_str().expect("a name");
    let (x, y, at) = match name {
        "periodic_times_rbf_plus_rbf" => line(),
        _ => plane(),
    };
    let process = process(case, kernel(name));
    check_evidence(case, &process, &x, &y);
    let posterior = process.condition(x.view(), y.view()).unwrap();
    let got = posterior.predict(at.view()).unwrap();
    assert_close(case, "predictive_mean", got.mean);
    assert_close(
        case,
        "predictive_std",
        got.observed_variance.mapv(f64::sqrt),
    );
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
