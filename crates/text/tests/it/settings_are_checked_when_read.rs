//! Settings are written in kebab case, read again, and refused out of range or with unknown names.

use bochner_text::{
    BatchConfig, BeamConfig, BleuConfig, BootstrapConfig, ChrfConfig, SubwordConfig, TerConfig,
    VocabularyConfig,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

fn round_trip<T: Serialize + DeserializeOwned + Default + PartialEq + Debug>() {
    let text = serde_json::to_string(&T::default()).unwrap();
    assert!(!text.contains('_'), "{text}");
    assert_eq!(serde_json::from_str::<T>(&text).unwrap(), T::default());
    assert_eq!(serde_json::from_str::<T>("{}").unwrap(), T::default());
    assert!(refusal::<T>(r#"{"extra": 1}"#).contains("extra"));
}

fn refusal<T: DeserializeOwned + Debug>(text: &str) -> String {
    serde_json::from_str::<T>(text).unwrap_err().to_string()
}

#[test]
fn defaults_are_read_again() {
    round_trip::<BatchConfig>();
    round_trip::<BeamConfig>();
    round_trip::<BleuConfig>();
    round_trip::<BootstrapConfig>();
    round_trip::<ChrfConfig>();
    round_trip::<SubwordConfig>();
    round_trip::<TerConfig>();
    round_trip::<VocabularyConfig>();
}

#[test]
fn settings_out_of_range_are_refused() {
    assert!(refusal::<BatchConfig>(r#"{"tokens": 0}"#).contains("`tokens` is 0"));
    assert!(refusal::<BatchConfig>(r#"{"sentences": 0}"#).contains("`sentences` is 0"));
    assert!(refusal::<BatchConfig>(r#"{"bucket": 0}"#).contains("`bucket` is 0"));
    assert!(refusal::<BeamConfig>(r#"{"beam": 0}"#).contains("`beam` is 0"));
    assert!(refusal::<BeamConfig>(r#"{"alpha": -1.0}"#).contains("`alpha` is -1"));
    assert!(refusal::<BeamConfig>(r#"{"no-repeat-ngram": 0}"#).contains("`no_repeat_ngram` is 0"));
    let shortest = r#"{"min-length": 5, "max-length": 4}"#;
    assert!(refusal::<BeamConfig>(shortest).contains("at most `max_length`, 4"));
    let bound = r#"{"source-bound": {"per-token": -1.0, "more": 10}}"#;
    assert!(refusal::<BeamConfig>(bound).contains("`per_token` is -1"));
    assert!(refusal::<BleuConfig>(r#"{"max-order": 0}"#).contains("`max_order` is 0"));
    let floor = r#"{"smoothing": {"floor": {"value": -0.1}}}"#;
    assert!(refusal::<BleuConfig>(floor).contains("value of smoothing"));
    assert!(refusal::<BootstrapConfig>(r#"{"samples": 0}"#).contains("`samples` is 0"));
    assert!(refusal::<VocabularyConfig>(r#"{"min-count": 0}"#).contains("`min_count` is 0"));
    assert!(refusal::<VocabularyConfig>(r#"{"max-words": 0}"#).contains("`max_words` is 0"));
    assert!(refusal::<SubwordConfig>(r#"{"merges": 0}"#).contains("`merges` is 0"));
    assert!(refusal::<SubwordConfig>(r#"{"min-frequency": 0}"#).contains("`min_frequency` is 0"));
}
