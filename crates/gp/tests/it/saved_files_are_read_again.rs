//! Processes and posteriors that are written and read again are the same, and other files are refused.

use bochner_gp::{Error, FitConfig, GaussianProcess, Posterior, from_json, seasonal_process};
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
    let read: GaussianProcess = from_json(&text).unwrap();
    assert_eq!(read.parameters(), process.parameters());
    assert_eq!(
        read.evidence(x.view(), y.view()),
        process.evidence(x.view(), y.view())
    );

    let posterior = process.condition(x.view(), y.view()).unwrap();
    // It owns its data.
    drop((process, x, y));
    let text = serde_json::to_string(&posterior).unwrap();
    let read: Posterior = from_json(&text).unwrap();
    let at = array![[3.3], [50.0]];
    assert_eq!(read.predict(at.view()), posterior.predict(at.view()));
}

#[test]
fn other_files_are_refused() {
    let (x, y) = seasons();
    let process = seasonal_process(x.view(), y.view(), 12.0).unwrap();
    let posterior = process.condition(x.view(), y.view()).unwrap();
    let changed = |good: Value, change: &dyn Fn(&mut Value)| {
        let mut value = good;
        change(&mut value);
        serde_json::to_string(&value).unwrap()
    };
    let refused = |change: &dyn Fn(&mut Value)| {
        let text = changed(serde_json::to_value(&process).unwrap(), change);
        from_json::<GaussianProcess>(&text).unwrap_err()
    };
    let newer = Error::Version { got: 2, known: 1 };
    // Another version may have other fields, too.
    let next = |v: &mut Value| *v = json!({"version": 2, "processes": []});
    assert_eq!(refused(&next), newer);
    let inner = |v: &mut Value| v["process"]["version"] = 2.into();
    let text = changed(serde_json::to_value(&posterior).unwrap(), &inner);
    assert_eq!(from_json::<Posterior>(&text).unwrap_err(), newer);
    let unread = serde_json::from_str::<Posterior>(&text).unwrap_err();
    assert!(
        unread.to_string().starts_with(&newer.to_string()),
        "{unread}"
    );

    let wavelet = json!({"scale": {"variance": 1.0, "base": {"sum": [{"wavelet": {}}]}}});
    let unknown = refused(&|v| v["process"]["kernel"] = wavelet.clone());
    assert!(
        matches!(&unknown, Error::UnknownKernel { got, known } if got == "wavelet" && known.contains(&"rbf"))
    );
    let said = |change: &dyn Fn(&mut Value), start: &str| match refused(change) {
        Error::File { reason, .. } => assert!(reason.starts_with(start), "{reason}"),
        other => panic!("{other}"),
    };
    said(&|v| v["process"]["noise"] = (-1.0).into(), "`noise` is -1");
    said(
        &|v| v["process"]["observation-noise"] = json!([-1.0]),
        "`observation_noise` is -1",
    );
    said(
        &|v| v["process"]["nois"] = 1.0.into(),
        "unknown field `nois`",
    );
    let missing = |v: &mut Value| drop(v["process"].as_object_mut().unwrap().remove("noise"));
    said(&missing, "missing field `noise`");
    let cut = from_json::<GaussianProcess>("{\"version\": 1,\n").unwrap_err();
    assert!(matches!(cut, Error::File { line: 2, .. }), "{cut}");
}
