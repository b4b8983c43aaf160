//! Evidence, its gradient and predictions on the Housing data are those of scikit-learn.
//!
//! The data are looked for in the directory `BOCHNER_DATA`; the numbers are in `golden/housing.json`,
//! made by `golden/housing.py`.

use crate::agrees_with_scikit_learn::{
    Dynamic, assert_close, check_evidence, matern, number, numbers, process, rbf, scale,
};
use bochner_datasets::{DataStore, Pin, Policy, Protocol, RegressionSet, Rows, load, manifest};
use bochner_kernels::{Lengthscale, Smoothness};
use ndarray::{Array1, Array2, Axis};
use serde_json::Value;

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

fn kernel(case: &Value) -> Dynamic {
    let lengthscale = match numbers(case, "lengthscales")[..] {
        [one] => Lengthscale::Shared(one),
        ref each => Lengthscale::PerDimension(each.to_vec()),
    };
    let base = match case["name"].as_str().expect("a name") {
        "scaled_rbf" | "scaled_rbf_ard" => rbf(lengthscale),
        "scaled_matern_three_halves" => matern(Smoothness::ThreeHalves, lengthscale),
        "scaled_matern_five_halves_ard" => matern(Smoothness::FiveHalves, lengthscale),
        name => panic!("no kernel is called {name}"),
    };
    scale(number(case, "variance"), base)
}

fn check(case: &Value, x: &Array2<f64>, y: &Array1<f64>) {
    let process = process(case, kernel(case));
    check_evidence(case, &process, x, y);
    let (asked, known): (Vec<usize>, Vec<usize>) = (0..y.len()).partition(|i| i % 10 == 0);
    let (seen, targets) = (x.select(Axis(0), &known), y.select(Axis(0), &known));
    let posterior = process.condition(seen.view(), targets.view()).unwrap();
    let got = posterior.predict(x.select(Axis(0), &asked).view()).unwrap();
    assert_close(case, "predictive_mean", got.mean);
    assert_close(case, "predictive_variance", got.observed_variance);
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
    let expected = provenance["sha256"].as_str().unwrap();
    assert!(matches!(&entry.pin, Pin::Sha256 { sha256, .. } if sha256 == expected));
}
