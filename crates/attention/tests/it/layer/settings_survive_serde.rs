//! Settings are read as they are written, and what is written does not change with new settings.

use bochner_attention::{MultiHeadConfig, PositionBias, Softmax, registry};
use bochner_numerics::Seed;

#[test]
fn for_every_mechanism() {
    for variant in registry() {
        let config = MultiHeadConfig {
            heads: 3,
            variant,
            dropout: 0.25,
            seed: Seed::new(9),
            key_width: Some(5),
            value_width: Some(6),
            key_heads: Some(1),
            bias: false,
            causal: true,
            window: Some([4, 0]),
            position_bias: PositionBias::Learned { reach: 3 },
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
        variant: Softmax {}.into(),
        ..Default::default()
    };
    let text = r#"{"heads":8,"variant":{"mechanism":"Softmax"},"dropout":0.0,"seed":0}"#;
    assert_eq!(serde_json::to_string(&config).unwrap(), text);
    assert_eq!(
        serde_json::from_str::<MultiHeadConfig>(text).unwrap(),
        config
    );
}
