//! Processes and posteriors that are written and read again are the same, and other files are refused.

use bochner_gp::{FitConfig, GaussianProcess, Posterior, seasonal_process};
use ndarray::{Array1, Array2, array};
use serde_json::{Value, json};

fn seasons() -> (Array2<f64>, Array1<f64>) {
    let x = Array2::from_shape_fn((48, 1), |(i, _)| i as f64 + 0.1 * (1.9 * i as f64).sin());
    let y = x
        .column(0)
        .mapv(|t| 0.1 * t + (std::f64::consts::TAU * t / 12.0).sin() + 0.1 * (2.3 * t).cos());
    (x, y)
}

#[test]
fn saved_files_are_read_again() {
    let (x, y) = seasons();
    let mut process = seasonal_process(x.view(), y.view(), 12.0).unwrap();
    let brief = FitConfig {
        steps: 5,
        ..FitConfig::default()
    };
    process.fit(x.view(), y.view(), &brief).unwrap();
    let text = serde_json::to_string(&process).unwrap();
    let read: GaussianProcess = serde_json::from_str(&text).unwrap();
    assert_eq!(read.parameters(), process.parameters());
    assert_eq!(
        read.evidence(x.view(), y.view()),
        process.evidence(x.view(), y.view())
    );

    let posterior = process.condition(x.view(), y.view()).unwrap();
    // It owns its data.
    drop((process, x, y));
    let text = serde_json::to_string(&posterior).unwrap();
    let read: Posterior = serde_json::from_str(&text).unwrap();
    let at = array![[3.3], [50.0]];
    assert_eq!(read.predict(at.view()), posterior.predict(at.view()));
}

#[test]
fn other_files_are_refused() {
    let (x, y) = seasons();
    let process = seasonal_process(x.view(), y.view(), 12.0).unwrap();
    let good = serde_json::to_value(&process).unwrap();
    let refused = |change: &dyn Fn(&mut Value), start: &str| {
        let mut value = good.clone();
        change(&mut value);
        let text = serde_json::to_string(&value).unwrap();
        let error = serde_json::from_str::<GaussianProcess>(&text)
            .unwrap_err()
            .to_string();
        assert!(error.contains(start), "{error}");
    };
    refused(
        &|v| v["version"] = 2.into(),
        "the file has the version 2 of the format, but this program reads version 1",
    );
    let kernel = |v: &mut Value, kernel: Value| v["process"]["kernel"] = kernel;
    refused(
        &|v| kernel(v, json!({"wavelet": {}})),
        "unknown variant `wavelet`, expected one of `rbf`, `matern`",
    );
    refused(&|v| v["process"]["noise"] = (-1.0).into(), "`noise` is -1");
    refused(
        &|v| v["process"]["observation-noise"] = json!([-1.0]),
        "`observation_noise` is -1",
    );
    refused(
        &|v| v["process"]["nois"] = 1.0.into(),
        "unknown field `nois`",
    );
}
