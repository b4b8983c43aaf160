//! Settings that are written and read again are the same, and what cannot be read is refused.

use bochner_kernels::{
    AnyKernel, ConstantConfig, Cosine, ExpsinConfig, Lengthscale, LinearConfig, MaternConfig,
    PolynomialConfig, RandomFeatureMap, RationalQuadraticConfig, RbfConfig, Smoothness,
    SpectralMixtureConfig, UniformBoundConfig, WhiteConfig,
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
        lengthscale: Lengthscale::Shared(0.7),
    });
    survives(mixture());
    survives(RationalQuadraticConfig {
        lengthscale: lengthscale.clone(),
        alpha: 0.7,
    });
    survives(PolynomialConfig {
        lengthscale,
        offset: 0.3,
        degree: 2,
    });
    survives(ConstantConfig { variance: 0.1 });
    survives(WhiteConfig { variance: 0.1 });
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
        "cosine": "joint"}"#;
    let error = serde_json::from_str::<SpectralMixtureConfig<f64>>(text).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("row 1 has 2 entries where the first has 1"),
        "{text}"
    );
}

/// Reading refuses what building refuses, for every type.
#[test]
fn settings_that_cannot_stand_are_refused_when_read() {
    fn refused<C: DeserializeOwned + Debug>(text: &str, start: &str) {
        let error = serde_json::from_str::<C>(text).unwrap_err().to_string();
        assert!(error.starts_with(start), "{error}");
    }
    refused::<Lengthscale<f32>>("-1.0", "`lengthscale` is -1");
    refused::<Lengthscale<f64>>("[]", "`lengthscale` has shape [0]");
    let lengthscale = r#"{"lengthscale": [1.0, -1.0]}"#;
    refused::<RbfConfig<f64>>(lengthscale, "`lengthscale[1]` is -1");
    refused::<LinearConfig<f64>>(lengthscale, "`lengthscale[1]` is -1");
    let rough = r#"{"smoothness": "half", "lengthscale": 0.0}"#;
    refused::<MaternConfig<f64>>(rough, "`lengthscale` is 0");
    let still = r#"{"period": 0.0, "lengthscale": 1.0}"#;
    refused::<ExpsinConfig<f64>>(still, "`period` is 0");
    let uneven = r#"{"weights": [1], "means": [[1, 2]], "variances": [[1]], "cosine": "joint"}"#;
    refused::<SpectralMixtureConfig<f64>>(uneven, "`variances` has shape [1, 1]");
    let (alpha, offset) = (
        r#"{"lengthscale": 1.0, "alpha": 0.0}"#,
        r#"{"lengthscale": 1.0, "offset": 0.0, "degree": 1}"#,
    );
    refused::<RationalQuadraticConfig<f64>>(alpha, "`alpha` is 0");
    refused::<PolynomialConfig<f64>>(offset, "`offset` is 0");
    for degree in [0, 65] {
        let text = format!(r#"{{"lengthscale": 1.0, "offset": 1.0, "degree": {degree}}}"#);
        refused::<PolynomialConfig<f64>>(&text, &format!("`degree` is {degree}"));
    }
    refused::<ConstantConfig<f64>>(r#"{"variance": -1.0}"#, "`variance` is -1");
    refused::<WhiteConfig<f64>>(r#"{"variance": 0.0}"#, "`variance` is 0");
    refused::<AnyKernel<f64>>(r#"{"sum": []}"#, "`parts` has shape [0]");
    let nested = r#"{"scale": {"variance": -2.0, "base": {"white": {"variance": 1.0}}}}"#;
    refused::<AnyKernel<f64>>(nested, "`variance` is -2");
    let newer = r#"{"product": [{"white": {"variance": 1.0}}, {"wavelet": {"order": 2}}]}"#;
    refused::<AnyKernel<f64>>(
        newer,
        "unknown variant `wavelet`, expected one of `rbf`, `matern`",
    );
    let nowhere = r#"{"width": 0, "diameter": 1.0, "spread": 1.0}"#;
    refused::<UniformBoundConfig>(nowhere, "`width` is 0");
    refused::<RandomFeatureMap>(r#"{"relu": {"epsilon": 0.0}}"#, "`epsilon` is 0");
}
