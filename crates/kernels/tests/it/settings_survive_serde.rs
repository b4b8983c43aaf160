//! Settings that are written and read again are the same, and what cannot be read is refused.

use bochner_kernels::{
    Cosine, ExpsinConfig, Lengthscale, LinearConfig, MaternConfig, RbfConfig, Smoothness,
    SpectralMixtureConfig, UniformBoundConfig,
};
use ndarray::array;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

fn survives<C: Serialize + DeserializeOwned + PartialEq + Debug>(config: C) {
    let text = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<C>(&text).unwrap(), config, "{text}");
    let extra = format!("{}, \"extra\": 1}}", &text[..text.len() - 1]);
    let error = serde_json::from_str::<C>(&extra).unwrap_err();
    assert!(error.to_string().contains("extra"), "{error}");
}

fn mixture() -> SpectralMixtureConfig<f64> {
    SpectralMixtureConfig {
        weights: array![0.1, 0.3],
        means: array![[1.0, 2.0], [3.0, 0.1 + 0.2]],
        variances: array![[0.5, 0.25], [1.0 / 3.0, 2.0]].reversed_axes(),
        cosine: Cosine::Product,
    }
}

#[test]
fn settings_survive() {
    let lengthscale = Lengthscale::Shared(0.1_f32);
    survives(RbfConfig { lengthscale });
    let lengthscale = Lengthscale::PerDimension(vec![0.5, 1.0 / 3.0]);
    survives(LinearConfig {
        lengthscale: lengthscale.clone(),
    });
    for smoothness in Smoothness::ALL {
        let lengthscale = lengthscale.clone();
        survives(MaternConfig {
            smoothness,
            lengthscale,
        });
    }
    survives(ExpsinConfig {
        period: 12.0,
        lengthscale: 0.7,
    });
    survives(mixture());
    survives(UniformBoundConfig {
        width: 3,
        diameter: 2.0,
        spread: 1.5,
    });
}

#[test]
fn they_are_written_as_one_would() {
    let read = serde_json::from_str::<RbfConfig<f64>>(r#"{"lengthscale": [1.0, 2.0]}"#);
    let lengthscale = Lengthscale::PerDimension(vec![1.0, 2.0]);
    assert_eq!(read.unwrap(), RbfConfig { lengthscale });
    let text = serde_json::to_string(&mixture()).unwrap();
    assert!(text.contains(r#""weights":[0.1,0.3],"means":[[1.0,2.0],[3.0,"#));
}

#[test]
fn uneven_rows_are_named() {
    let text = r#"{"weights": [1, 2], "means": [[1], [2, 3]], "variances": [[1], [1]],
        "cosine": "Joint"}"#;
    let error = serde_json::from_str::<SpectralMixtureConfig<f64>>(text).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("row 1 has 2 entries where the first has 1"),
        "{text}"
    );
}

/// Reading settings checks nothing; what they build does.
#[test]
fn settings_that_cannot_stand_are_read_but_build_nothing() {
    fn read<C: DeserializeOwned>(text: &str) -> C {
        serde_json::from_str(text).unwrap()
    }
    let lengthscale = r#"{"lengthscale": [1.0, -1.0]}"#;
    assert!(read::<RbfConfig<f64>>(lengthscale).build().is_err());
    assert!(read::<LinearConfig<f64>>(lengthscale).build().is_err());
    let rough = r#"{"smoothness": "Half", "lengthscale": 0.0}"#;
    assert!(read::<MaternConfig<f64>>(rough).build().is_err());
    let still = r#"{"period": 0.0, "lengthscale": 1.0}"#;
    assert!(read::<ExpsinConfig<f64>>(still).build().is_err());
    let uneven = r#"{"weights": [1], "means": [[1, 2]], "variances": [[1]], "cosine": "Joint"}"#;
    assert!(read::<SpectralMixtureConfig<f64>>(uneven).build().is_err());
    let nowhere = r#"{"width": 0, "diameter": 1.0, "spread": 1.0}"#;
    assert!(read::<UniformBoundConfig>(nowhere).build().is_err());
}
