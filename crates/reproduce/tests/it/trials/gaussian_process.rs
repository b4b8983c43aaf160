//! Gaussian processes.

use super::of_smoke;
use bochner_datasets::{DataStore, Policy, Protocol, RegressionSet, Rows, load};
use bochner_gp::rbf_process;
use bochner_ops::{AdamConfig, AdamRule, Moments};
use bochner_reproduce::suites::REGRESSION;
use ndarray::{Array1, Array2};

#[test]
fn errors_are_those_of_steps_by_hand() {
    let (source, unit) = of_smoke(&REGRESSION, "Passenger", "GP (RBF)");
    let files = DataStore::new(Policy::Offline);
    let data = load(RegressionSet::Passenger, Protocol::P10, Rows::All, &files).unwrap();
    let split = &data.splits[unit.split];
    let column = |rows: &[usize]| {
        Array2::from_shape_fn((rows.len(), 1), |(i, _)| data.inputs.row(rows[i])[0])
    };
    let target = |rows: &[usize]| {
        rows.iter()
            .map(|&i| data.target[i])
            .collect::<Array1<f64>>()
    };
    let (x, y) = (column(&split.train), target(&split.train));
    let mut seen = Vec::new();
    let mut process = rbf_process(x.view(), y.view()).unwrap();
    let mut coordinates = process.coordinates();
    let mut moments = Moments::zeros(coordinates.len());
    let adam = AdamConfig {
        learning_rate: 0.01,
        ..AdamConfig::default()
    };
    for taken in 1..=5 {
        let posterior = process.condition(x.view(), y.view()).unwrap();
        let error = |rows: &[usize]| {
            let predicted = posterior.predict(column(rows).view()).unwrap().mean;
            let square = (predicted - target(rows)).mapv(|e| e * e);
            square.mean().unwrap()
        };
        let gradient = posterior.evidence_gradient().unwrap();
        let each = gradient.evidence.log_likelihood / y.len() as f64;
        seen.push((
            each,
            [&split.train, &split.validation, &split.test].map(|r| error(r)),
        ));
        let descent = gradient.coordinates.iter().map(|g| -g / y.len() as f64);
        let descent: Vec<f64> = descent.collect();
        AdamRule::new(&adam, 0.01, taken).step(&mut coordinates, &mut moments, &descent);
        process.set_coordinates(&coordinates).unwrap();
    }

    let mut trial = source.start(&unit).unwrap();
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    for points in seen.windows(2) {
        let step = trial.model_mut().epoch().unwrap();
        close(step.loss, -points[0].0);
        close(step.squared_error, points[0].1[0]);
        let evaluation = trial.evaluate().unwrap();
        close(evaluation.validation.unwrap().powi(2), points[1].1[1]);
        close(evaluation.test.powi(2), points[1].1[2]);
    }
    assert_eq!(trial.model().parameters(), 4);
}
