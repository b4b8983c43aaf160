//! Settings with names of several words are read with hyphens and with underscores, those of mechanisms aside. It stands
//! here because this crate depends on all of them.

use bochner_attention::layer::BipolarLayerConfig;
use bochner_graph::{GraphAttentionConfig, GraphConvolutionConfig};
use bochner_models::decoder::DecoderLayerConfig;
use bochner_models::node_classifier::Sampling;
use bochner_models::training::TrainingConfig;
use bochner_ops::{AdamConfig, Sgd, SpikingNeuron};
use bochner_spectral::DensityFitConfig;
use bochner_text::{BeamConfig, BleuConfig, SubwordConfig, VocabularyConfig};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fmt::Debug;

/// Asserts that the text is read, and alike with its fields' names in the other spelling.
fn both<S: DeserializeOwned + PartialEq + Debug>(text: &str) {
    let other = |name: &str| match name.contains('-') {
        true => name.replace('-', "_"),
        false => name.replace('_', "-"),
    };
    let fields: Map<String, Value> = serde_json::from_str(text).unwrap();
    let respelt: Map<String, Value> = (fields
        .iter()
        .map(|(name, value)| (other(name), value.clone())))
    .collect();
    assert_ne!(respelt, fields);
    let [want, got] = [fields, respelt].map(|fields| serde_json::from_value::<S>(fields.into()));
    assert_eq!(got.unwrap(), want.unwrap(), "{text}");
}

#[test]
fn of_every_type() {
    both::<BipolarLayerConfig>(r#"{"last-neuron": {"decay": 0.25}}"#);
    both::<GraphAttentionConfig>(
        r#"{"inputs": 3, "heads": 2, "width": 4, "kind": "classic", "source-inputs": 5, "edge-inputs": 2,
            "weight-bias": "learned", "input-dropout": 0.1, "value-dropout": 0.2, "coefficient-dropout": 0.3}"#,
    );
    both::<GraphConvolutionConfig>(r#"{"inputs": 3, "outputs": 2, "input-dropout": 0.1}"#);
    both::<DecoderLayerConfig>(
        r#"{"width": 4, "heads": 2, "hidden": 8, "attention": {"mechanism": "softmax"},
            "cross_attention": {"mechanism": "softmax"}, "dropout": 0.1}"#,
    );
    both::<Sampling>(r#"{"batch": 2, "fan-outs": ["all", {"at-most": 3}]}"#);
    both::<TrainingConfig>(r#"{"learning_rate": 0.5, "clip_norm": 2.0}"#);
    both::<AdamConfig>(r#"{"learning-rate": 0.5, "weight-decay": {"decoupled": 0.1}}"#);
    both::<Sgd>(r#"{"learning-rate": 0.5}"#);
    both::<SpikingNeuron>(r#"{"surrogate-width": 0.5}"#);
    both::<DensityFitConfig>(r#"{"learning-rate": 0.5}"#);
    both::<BeamConfig>(r#"{"max-length": 9}"#);
    both::<BleuConfig>(r#"{"max-order": 3}"#);
    both::<SubwordConfig>(r#"{"min-frequency": 3}"#);
    both::<VocabularyConfig>(r#"{"min-count": 2, "max-words": 9}"#);
}
