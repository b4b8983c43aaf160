//! A text cannot carry settings that no model is built from, nor a training started with.

use crate::{common, tiny, translators};
use bochner_attention::Softmax;
use bochner_graph::AttentionKind;
use bochner_models::classifier::TextClassifierConfig;
use bochner_models::datapoints::{Between, BlockConfig, Column, Normalised};
use bochner_models::decoder::{DecoderConfig, DecoderLayerConfig};
use bochner_models::embedding::WordEmbeddingConfig;
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_models::next_event::{NextEventConfig, TimeSense};
use bochner_models::node_classifier::{
    Architecture, AttentionLayers, Dropout, NodeClassifierConfig,
};
use bochner_models::positions::Positions;
use bochner_models::regressor::{RegressorConfig, TrainingConfig};
use bochner_models::training::{FitConfig, Goal, Schedule};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;

/// Asserts that settings survive, and that each of the changes is refused by its name.
fn check<S>(settings: &S, changes: &[(&str, Value)])
where
    S: Serialize + DeserializeOwned + Debug + PartialEq,
{
    let usual = serde_json::to_value(settings).unwrap();
    assert_eq!(
        &serde_json::from_value::<S>(usual.clone()).unwrap(),
        settings
    );
    for (path, wrong) in changes {
        let mut value = usual.clone();
        *place(&mut value, path) = wrong.clone();
        let error = serde_json::from_value::<S>(value)
            .expect_err(path)
            .to_string();
        let name = path.rsplit('/').next().unwrap();
        let named = [format!("`{name}`"), format!(".{name}`")];
        assert!(
            named.iter().any(|name| error.contains(name)),
            "{path}: {error}"
        );
    }
}

/// The place of a field, which is made if it is not there.
fn place<'a>(value: &'a mut Value, path: &str) -> &'a mut Value {
    path.split('/').fold(value, |value, name| &mut value[name])
}

fn layer() -> EncoderLayerConfig {
    common::layer(Softmax::default().into(), NormPlacement::Pre, 0.1)
}

/// Invalid settings of a layer of an encoder or a decoder.
fn of_layer() -> [(&'static str, Value); 4] {
    [
        ("width", json!(0)),
        ("heads", json!(3)),
        ("hidden", json!(0)),
        ("dropout", json!(1.0)),
    ]
}

#[test]
fn encoders_and_what_is_built_of_them() {
    let encoder = EncoderConfig::new(1, layer());
    check(&layer(), &of_layer());
    check(&encoder, &[("layers", json!(0)), ("layer/width", json!(0))]);
    let mut classifier = TextClassifierConfig::transformer(9, 2, 5, encoder);
    classifier.class_names = ["good", "bad"].map(str::to_owned).to_vec();
    check(
        &classifier,
        &[
            ("class_names", json!(["good"])),
            ("class_names", json!(["good", "good"])),
            ("words", json!(0)),
            ("classes", json!(0)),
            ("encoder/layers", json!(0)),
            ("embedding/dropout", json!(-0.1)),
            ("embedding/positions/sinusoidal/longest", json!(0)),
        ],
    );
    check(&WordEmbeddingConfig::default(), &[("dropout", json!(1.0))]);
    let positions = Positions::Sinusoidal { longest: 3 };
    for longest in [0, (1 << 24) + 1] {
        check(&positions, &[("sinusoidal/longest", json!(longest))]);
    }
    let regressor = RegressorConfig::new(3, Softmax::default().into());
    check(&regressor, &[("inputs", json!(0))]);
    check(&regressor, &of_layer());
}

#[test]
fn decoders_and_translators() {
    let layer = DecoderLayerConfig {
        width: 8,
        heads: 2,
        hidden: 16,
        attention: Softmax::default().into(),
        cross_attention: Softmax::default().into(),
        dropout: 0.1,
        ..Default::default()
    };
    check(&layer, &of_layer());
    let decoder = DecoderConfig { layers: 1, layer };
    check(&decoder, &[("layers", json!(0)), ("layer/width", json!(0))]);
    let softmax = [(); 3].map(|()| Softmax::default().into());
    let translator = translators::config(softmax, 8, [9, 5]);
    let changes = [
        ("start", json!(9)),
        ("end", json!(9)),
        ("end", json!(2)),
        ("longest", json!(0)),
        ("encoder/layers", json!(0)),
        ("decoder/layer/heads", json!(3)),
        ("attention_dropout", json!(1.0)),
    ];
    check(&translator, &changes);
}

#[test]
fn attention_between_datapoints() {
    let block = BlockConfig {
        columns: 3,
        width: 4,
        heads: 2,
        between: Between::Attributes,
        attention: None,
        normalised: Normalised::All,
        dropout: 0.0,
        epsilon: 1e-12,
    };
    let changes = [
        ("columns", json!(0)),
        ("width", json!(0)),
        ("heads", json!(3)),
        ("epsilon", json!(0.0)),
        ("dropout", json!(1.0)),
    ];
    check(&block, &changes);
    let columns = [Column::Number, Column::Class(3)];
    let model = tiny::npt(&columns, &[Between::Attributes], None);
    let changes = [
        ("columns", json!([])),
        ("blocks", json!([])),
        ("width", json!(0)),
        ("heads", json!(3)),
        ("epsilon", json!(-1.0)),
    ];
    check(&model, &changes);
    check(&Column::Class(3), &[("class", json!(0))]);
}

#[test]
fn next_events() {
    let encoder = EncoderConfig::new(1, layer());
    let sense = TimeSense::Bochner {
        frequencies: 2,
        periods: [1.0, 10.0],
    };
    let config = NextEventConfig {
        kinds: 3,
        encoder,
        time: vec![sense],
    };
    check(&sense, &[("bochner/periods", json!([0.0, 1.0]))]);
    check(
        &config,
        &[("kinds", json!(0)), ("encoder/layers", json!(0))],
    );
    let refused = |periods: Value, frequencies: usize| {
        let mut value = serde_json::to_value(&config).unwrap();
        value["time"] = json!([{"bochner": {"frequencies": frequencies, "periods": periods}}]);
        let refused = serde_json::from_value::<NextEventConfig>(value);
        refused.unwrap_err().to_string()
    };
    assert!(refused(json!([0.0, 1.0]), 2).contains("`periods`"));
    assert!(refused(json!([2.0, 1.0]), 2).contains("`periods`"));
    // The width of the encoder is 8, and the kinds need some of it.
    for frequencies in [0, 4] {
        assert!(refused(json!([1.0, 2.0]), frequencies).contains("`features of time`"));
    }
}

#[test]
fn node_classifiers() {
    let architecture = Architecture::attention(AttentionKind::Classic);
    check(
        &architecture,
        &[
            ("attention/heads", json!(0)),
            ("attention/width", json!(0)),
            ("attention/output_heads", json!(0)),
            ("attention/layers", json!(0)),
            ("attention/layers", json!(1_000_000_000_000_u64)),
            ("attention/residuals", json!("added")),
        ],
    );
    // One layer has no hidden sizes that could be obeyed.
    let mut single = AttentionLayers::new(AttentionKind::Classic);
    (single.layers, single.heads, single.width) = (1, 0, 0);
    check(
        &Architecture::Attention(single),
        &[("attention/heads", json!(8)), ("attention/width", json!(8))],
    );
    let (hidden, layers) = (0, 1);
    check(
        &Architecture::Convolution { hidden, layers },
        &[("convolution/hidden", json!(4))],
    );
    let config = NodeClassifierConfig {
        inputs: 3,
        classes: 2,
        architecture: Architecture::convolution(4),
        dropout: Dropout::of_inputs(0.5),
    };
    check(
        &config,
        &[
            ("inputs", json!(0)),
            ("classes", json!(0)),
            ("architecture/convolution/hidden", json!(0)),
            ("architecture/convolution/layers", json!(0)),
            ("architecture/convolution/layer", json!(3)),
            ("dropout/inputs", json!(1.0)),
            ("dropout/values", json!(0.5)),
        ],
    );
}

#[test]
fn trainings() {
    check(
        &TrainingConfig::regression(),
        &[
            ("learning_rate", json!(-0.1)),
            ("clip_norm", json!(0.0)),
            ("l2", json!(-1e-4)),
        ],
    );
    let usual = TrainingConfig::default();
    let written = serde_json::to_value(&usual).unwrap();
    assert!(written.get("betas").is_none());
    let falling = TrainingConfig {
        betas: [0.9, 0.98],
        weight_decay: 0.1,
        schedule: Schedule::Cosine {
            warmup: 8,
            steps: 9,
        },
        ..usual
    };
    let changes = [
        ("weight_decay", json!(-0.1)),
        ("schedule/cosine/warmup", json!(9)),
    ];
    check(&falling, &changes);
    let endless = serde_json::from_str::<TrainingConfig>(r#"{"betas": [0.9, 1.0]}"#);
    assert!(endless.unwrap_err().to_string().contains("`betas[1]`"));
    let kebab = r#"{"weight-decay": 0.1, "learning-rate": 0.5, "clip-norm": 2.0}"#;
    let read: TrainingConfig = serde_json::from_str(kebab).unwrap();
    let want = (0.1, 0.5, Some(2.0));
    assert_eq!(
        (read.weight_decay, read.learning_rate, read.clip_norm),
        want
    );
    let fit = FitConfig {
        epochs: 5,
        patience: Some(2),
        goal: Goal::Lowest,
    };
    check(&fit, &[("epochs", json!(0)), ("patience", json!(0))]);
}
