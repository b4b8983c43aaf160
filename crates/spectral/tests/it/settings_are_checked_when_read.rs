//! Every settings type reads back as it was written, with defaults for what is left out, and refuses what
//! its functions refuse.

use bochner_spectral::{DensityFitConfig, Direct, DirectInit, Implicit, Stationarity};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

fn survives<S: Serialize + DeserializeOwned + PartialEq + Debug>(settings: &S) {
    let text = serde_json::to_string(settings).unwrap();
    assert_eq!(&serde_json::from_str::<S>(&text).unwrap(), settings);
}

fn refused<S: DeserializeOwned + Debug>(text: &str, start: &str) {
    let error = serde_json::from_str::<S>(text).unwrap_err().to_string();
    assert!(error.starts_with(start), "{error}");
}

fn starts_from_defaults<S: DeserializeOwned + PartialEq + Debug + Default>() {
    assert_eq!(serde_json::from_str::<S>("{}").unwrap(), S::default());
}

#[test]
fn of_every_type() {
    starts_from_defaults::<DensityFitConfig>();
    survives(&DensityFitConfig::default());
    refused::<DensityFitConfig>(r#"{"steps": 0}"#, "`steps` is 0");
    refused::<DensityFitConfig>(r#"{"learning-rate": -0.1}"#, "`learning_rate` is -0.1");

    starts_from_defaults::<Direct>();
    survives(&Direct {
        points: 3,
        start: DirectInit::KaimingUniform,
        stationarity: Stationarity::Stationary,
    });
    refused::<Direct>(r#"{"points": 0}"#, "`points` is 0");

    refused::<Direct>(r#"{"pionts": 3}"#, "unknown field `pionts`");

    starts_from_defaults::<Implicit>();
    let text = r#"{"points": 6, "prior-std": 0.5, "copula": "free", "posterior": "unconditional"}"#;
    survives(&serde_json::from_str::<Implicit>(text).unwrap());
    for (text, start) in [
        (r#"{"points": 0}"#, "`points` is 0"),
        (r#"{"slope": -0.2}"#, "`slope` is -0.2"),
        (r#"{"prior-std": 0}"#, "`prior_std` is 0"),
        (r#"{"prior-std": 1e-200}"#, "`prior_std` is 1e-200"),
        (r#"{"pionts": 3}"#, "unknown field `pionts`"),
        (
            r#"{"posterior": "unconditional"}"#,
            "an amortised copula with",
        ),
        (r#"{"preset": "released", "points": 3}"#, "`points` is 3"),
        (
            r#"{"preset": "released", "copula": "free"}"#,
            "the released preset with",
        ),
    ] {
        refused::<Implicit>(text, start);
    }
}
