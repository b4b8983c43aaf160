//! Evidence, its gradient and predictions on the Housing data are those of scikit-learn.
//!
//! The data are looked for in the directory `BOCHNER_DATA`; the numbers are in `golden/housing.json`,
//! made by `golden/housing.py`.

use bochner_datasets::{DataStore, Policy, Protocol, RegressionSet, Rows, load, manifest};
use bochner_gp::{GaussianProcess, GaussianProcessConfig, Jitter};
use bochner_kernels::{Kernel, Lengthscale, MaternConfig, RbfConfig, ScaleConfig, Smoothness};
use ndarray::{Array1, Array2, Axis};
use serde_json::Value;

const BOUND: f64 = 1e-8;

fn golden() -> Value {
    serde_json::from_str(include_str!("golden/housing.json")).unwrap()
}

/// Inputs and target.
fn housing() -> (Array2<f64>, Array1<f64>) {
    let directory = std::env::var_os("BOCHNER_DATA");
    let directory = directory.expect("BOCHNER_DATA names the directory of the data files");
    let store = DataStore::new(Policy::Offline)
        .with_directory(directory)
        .unwrap();
    let data = load(RegressionSet::Housing, Protocol::P10, Rows::All, &store).unwrap();
    let shape = (data.inputs.rows(), data.inputs.columns());
    let inputs = Array2::from_shape_vec(shape, data.inputs.values().to_vec()).unwrap();
    (inputs, data.target.into())
}

fn number(case: &Value, key: &str) -> f64 {
    case[key].as_f64().expect("a number")
}

fn numbers(case: &Value, key: &str) -> Vec<f64> {
    let values = case[key].as_array().expect("a list").iter();
    values.map(|v| v.as_f64().expect("a number")).collect()
}

fn base(case: &Value) -> Box<dyn Kernel<f64>> {
    let lengthscale = match numbers(case, "lengthscales")[..] {
        [one] => Lengthscale::Shared(one),
        ref each => Lengthscale::PerDimension(each.to_vec()),
    };
    let matern = |smoothness, lengthscale| MaternConfig {
        smoothness,
        lengthscale,
    };
    match case["name"].as_str().expect("a name") {
        "scaled_rbf" | "scaled_rbf_ard" => Box::new(RbfConfig { lengthscale }.build().unwrap()),
        "scaled_matern_three_halves" => Box::new(
            matern(Smoothness::ThreeHalves, lengthscale)
                .build()
                .unwrap(),
        ),
        "scaled_matern_five_halves_ard" => {
            Box::new(matern(Smoothness::FiveHalves, lengthscale).build().unwrap())
        }
        name => panic!("no kernel is called {name}"),
    }
}

fn process(case: &Value) -> GaussianProcess {
    let scale = ScaleConfig {
        variance: number(case, "variance"),
        base: base(case),
    };
    let config = GaussianProcessConfig {
        kernel: Box::new(scale.build().unwrap()),
        mean: number(case, "mean"),
        noise: number(case, "noise"),
        jitter: Jitter::Fixed(0.0),
    };
    config.build().unwrap()
}

/// The largest difference, relative where the numbers are larger than one.
fn difference(got: &[f64], want: &[f64]) -> f64 {
    assert_eq!(got.len(), want.len());
    let pairs = got.iter().zip(want);
    let each = pairs.map(|(g, w)| (g - w).abs() / w.abs().max(1.0));
    each.fold(0.0, |m, d| if d.is_nan() { d } else { m.max(d) })
}

fn check(case: &Value, x: &Array2<f64>, y: &Array1<f64>) {
    let process = process(case);
    let got = process.evidence_gradient(x.view(), y.view()).unwrap();
    let want = number(case, "log_marginal_likelihood");
    let evidence = difference(&[got.evidence.log_likelihood], &[want]);
    // scikit-learn has no mean to differentiate along.
    let gradient = difference(&got.coordinates[1..], &numbers(case, "gradient"));

    let (asked, known): (Vec<usize>, Vec<usize>) = (0..y.len()).partition(|i| i % 10 == 0);
    let (seen, targets) = (x.select(Axis(0), &known), y.select(Axis(0), &known));
    let posterior = process.condition(seen.view(), targets.view()).unwrap();
    let got = posterior.predict(x.select(Axis(0), &asked).view()).unwrap();
    let mean = difference(&got.mean.to_vec(), &numbers(case, "predictive_mean"));
    let variance = got.observed_variance.to_vec();
    let variance = difference(&variance, &numbers(case, "predictive_variance"));

    let found = [evidence, gradient, mean, variance];
    let name = &case["name"];
    assert!(found.iter().all(|&d| d < BOUND), "{name}: {found:?}");
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn agrees_with_scikit_learn_on_housing() {
    let golden = golden();
    let cases = golden["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 4);
    let (x, y) = housing();
    cases.iter().for_each(|case| check(case, &x, &y));
}

#[test]
fn the_numbers_were_made_from_the_pinned_file() {
    let provenance = &golden()["provenance"];
    let entry = manifest::entry(provenance["file"].as_str().unwrap()).unwrap();
    assert_eq!(provenance["sha256"].as_str(), Some(&*entry.pin.sha256));
}
