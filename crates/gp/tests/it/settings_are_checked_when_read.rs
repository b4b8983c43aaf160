//! Every settings type reads back as it was written, and refuses what its functions refuse.

use bochner_gp::{AdamConfig, FitConfig, Jitter, Optimiser, Prior};
use serde::de::DeserializeOwned;
use std::fmt::Debug;

fn refused<C: DeserializeOwned + Debug>(text: &str, start: &str) {
    let error = serde_json::from_str::<C>(text).unwrap_err().to_string();
    assert!(error.starts_with(start), "{error}");
}

#[test]
fn of_every_type() {
    let brief = FitConfig {
        steps: 7,
        optimiser: Optimiser::Adam(AdamConfig::default()),
        priors: [(
            "noise".to_owned(),
            Prior::Gamma {
                shape: 2.0,
                rate: 0.5,
            },
        )]
        .into(),
        ..FitConfig::default()
    };
    let text = serde_json::to_string(&brief).unwrap();
    assert_eq!(serde_json::from_str::<FitConfig>(&text).unwrap(), brief);
    let plain = serde_json::from_str::<FitConfig>(r#"{"steps": 7}"#).unwrap();
    assert_eq!((plain.steps, plain.optimiser), (7, Optimiser::Lbfgs));
    for (text, start) in [
        (r#"{"tolerance": -0.1}"#, "`tolerance` is -0.1"),
        (
            r#"{"optimiser": {"adam": {"learning-rate": -0.1}}}"#,
            "`learning_rate` is -0.1",
        ),
        (
            r#"{"priors": {"noise": {"gamma": {"shape": 0.0, "rate": 1.0}}}}"#,
            "`the shape of a prior` is 0",
        ),
        (r#"{"noise-floor": -1.0}"#, "`noise_floor` is -1"),
        (r#"{"step": 3}"#, "unknown field `step`"),
    ] {
        refused::<FitConfig>(text, start);
    }

    for jitter in [
        Jitter::Fixed(0.5),
        Jitter::Escalating {
            first: 0.1,
            last: 0.2,
        },
    ] {
        let text = serde_json::to_string(&jitter).unwrap();
        assert_eq!(serde_json::from_str::<Jitter>(&text).unwrap(), jitter);
    }
    refused::<Jitter>(r#"{"fixed": -1.0}"#, "`jitter` is -1");
    refused::<Jitter>(
        r#"{"escalating": {"first": 1.0, "last": 0.5}}"#,
        "`jitter.last` is 0.5",
    );
}
