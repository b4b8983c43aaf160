//! Settings are read as they are written, and what is written does not change with new settings.

use crate::conformance::settings_survive_serde::is_refused;
use bochner_attention::{
    MultiHeadConfig, PositionBias, Rotary, Softmax,
    card::{Masks, Stream},
    engine::RotaryPairing,
    layer::BipolarLayerConfig,
    registry,
};
use bochner_numerics::Seed;

#[test]
fn for_every_mechanism() {
    for variant in registry() {
        // Whatever the mechanism can do.
        let card = variant.card();
        let has = |stream| card.streams.contains(&stream);
        let (by_pairs, causal) = (card.masks == Masks::Any, card.causal.is_yes());
        let learnt = PositionBias::Learned { reach: 3 };
        let config = MultiHeadConfig {
            heads: 3,
            variant,
            dropout: 0.25,
            seed: Seed::new(9),
            key_width: (has(Stream::Keys) && !has(Stream::Input)).then_some(5),
            value_width: has(Stream::Values).then_some(6),
            memory_width: card.cross.is_yes().then_some(7),
            kv_heads: card.shared_keys.is_yes().then_some(1),
            bias: false,
            causal,
            window: by_pairs.then_some([4, usize::from(!causal)]),
            position_bias: if card.bias.is_yes() {
                learnt
            } else {
                PositionBias::None
            },
            rotary: has(Stream::Queries).then_some(Rotary {
                base: 500.0,
                width: Some(2),
                pairing: RotaryPairing::Interleaved,
                scale: 0.5,
            }),
        };
        let text = serde_json::to_string(&config).unwrap();
        let back: MultiHeadConfig = serde_json::from_str(&text).unwrap();
        assert_eq!(back, config, "{text}");
    }
}

/// Checkpoints and fingerprints hold this form.
#[test]
fn in_the_old_form_where_nothing_new_is_used() {
    let config = MultiHeadConfig {
        variant: Softmax::default().into(),
        ..Default::default()
    };
    let text = r#"{"heads":8,"variant":{"mechanism":"softmax"},"dropout":0.0,"seed":0}"#;
    assert_eq!(serde_json::to_string(&config).unwrap(), text);
    assert_eq!(
        serde_json::from_str::<MultiHeadConfig>(text).unwrap(),
        config
    );
}

/// Settings that every layer refuses, whatever its width, are refused when they are read.
#[test]
fn what_a_layer_refuses_cannot_be_read() {
    let config = |fields: &str| format!(r#"{{"heads":4,{fields}}}"#);
    assert!(serde_json::from_str::<MultiHeadConfig>(&config(r#""key-width":3"#)).is_ok());
    for (what, fields) in [
        ("dropout", r#""dropout":1.0"#),
        ("key_width", r#""key-width":0"#),
        ("value_width", r#""value-width":0"#),
        ("kv_heads", r#""kv-heads":3"#),
        ("window", r#""window":[0,0]"#),
        ("reach", r#""position-bias":{"learned":{"reach":99999999}}"#),
        (
            "floor",
            r#""variant":{"mechanism":"ikan-direct","floor":2.0}"#,
        ),
        (
            "causal mask",
            r#""causal":true,"variant":{"mechanism":"mikan"}"#,
        ),
        (
            "position bias",
            r#""position-bias":"alibi","variant":{"mechanism":"cat"}"#,
        ),
        ("width", r#""key-width":3,"rotary":{}"#),
        ("width", r#""rotary":{"width":3}"#),
        ("base", r#""rotary":{"base":0.0}"#),
        (
            "does not ask for",
            r#""rotary":{},"variant":{"mechanism":"cat"}"#,
        ),
    ] {
        is_refused::<MultiHeadConfig>(what, &config(fields));
    }
    is_refused::<MultiHeadConfig>("heads", r#"{"heads":0}"#);
    is_refused::<PositionBias>("reach", r#"{"learned":{"reach":99999999}}"#);

    let layer = BipolarLayerConfig::default();
    let text = serde_json::to_string(&layer).unwrap();
    assert_eq!(
        serde_json::from_str::<BipolarLayerConfig>(&text).unwrap(),
        layer
    );
    let neuron = r#"{"threshold":-1.0,"reset":0.0,"decay":0.5,"surrogate-width":1.0}"#;
    for (what, text) in [
        ("heads", r#"{"heads":0}"#.to_owned()),
        ("head", r#"{"head":2}"#.to_owned()),
        ("threshold", format!(r#"{{"neuron":{neuron}}}"#)),
        ("threshold", format!(r#"{{"last-neuron":{neuron}}}"#)),
    ] {
        is_refused::<BipolarLayerConfig>(what, &text);
    }
}
