//! Every option of attention reaches the layers of a model: it changes what these compute, trains a step, and decodes
//! token by token as in the whole pass.

use crate::common::layer;
use crate::translators::{self, log_prob};
use bochner_attention::{Pass, PositionBias, Rotary, Softmax, Variant};
use bochner_models::Error;
use bochner_models::attention::AttentionOptions;
use bochner_models::classifier::{self, TextClassifierConfig};
use bochner_models::decoder::DecoderLayerConfig;
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig};
use bochner_models::training::TrainingConfig;
use bochner_models::translator::{InputPositions, Translator, TranslatorConfig};
use bochner_numerics::{Seed, Tolerance};
use bochner_text::{BatchConfig, BeamConfig};
use dfdx::tensor::Cpu;

fn softmax() -> Variant {
    Softmax::default().into()
}

/// Each option alone, by its name.
fn options() -> [(&'static str, AttentionOptions); 6] {
    let none = AttentionOptions::default;
    let [kv_heads, key_width, value_width] = [Some(1), Some(6), Some(3)];
    let (window, position_bias) = (Some([2, 2]), PositionBias::Alibi);
    let rotary = Some(Rotary::default());
    [
        ("kv-heads", AttentionOptions { kv_heads, ..none() }),
        (
            "key-width",
            AttentionOptions {
                key_width,
                ..none()
            },
        ),
        (
            "value-width",
            AttentionOptions {
                value_width,
                ..none()
            },
        ),
        ("window", AttentionOptions { window, ..none() }),
        (
            "position-bias",
            AttentionOptions {
                position_bias,
                ..none()
            },
        ),
        ("rotary", AttentionOptions { rotary, ..none() }),
    ]
}

fn classifier(attention_options: AttentionOptions) -> TextClassifierConfig {
    let layer = EncoderLayerConfig {
        attention_options,
        ..layer(softmax(), Default::default(), 0.0)
    };
    TextClassifierConfig::transformer(20, 2, 9, EncoderConfig::new(2, layer))
}

#[test]
fn a_classifier_trains_with_each() {
    let sentences = vec![vec![4, 5, 6, 7, 8, 9], vec![9, 8, 7, 6]];
    let task = classifier::Task::new(sentences, vec![0, 1], BatchConfig::default()).unwrap();
    let losses = |options| {
        let (config, training) = (classifier(options), TrainingConfig::default());
        let trainer = classifier::Trainer::new(&config, &training, task.clone(), Seed::new(1));
        let mut trainer = trainer.unwrap();
        [0; 2].map(|_| trainer.epoch().unwrap().loss)
    };
    let plain = losses(AttentionOptions::default());
    for (name, options) in options() {
        let [first, second] = losses(options);
        assert!(
            second < first && first != plain[0],
            "{name}: {first} {second}"
        );
    }
}

/// A translator whose decoder attends to itself with the options, and to the memory with those that may be.
fn translator(options: &AttentionOptions, input_positions: InputPositions) -> TranslatorConfig {
    let mut config = translators::config([softmax(), softmax(), softmax()], 8, [12, 7]);
    let cross = AttentionOptions {
        rotary: options.rotary,
        ..options.clone().without_positions()
    };
    config.encoder.layer.attention_options = options.clone();
    config.decoder.layer.attention_options = options.clone();
    config.decoder.layer.cross_attention_options = cross;
    config.input_positions = input_positions;
    config
}

fn built(config: &TranslatorConfig) -> Result<Translator<f64>, Error> {
    Translator::try_new(&Cpu::default(), config, Seed::new(5))
}

#[test]
fn a_translator_decodes_token_by_token_as_in_the_whole_pass_with_each() {
    let (sources, pass) = ([vec![4, 5, 6, 7, 8], vec![9, 5]], Pass::evaluation());
    for (name, options) in options() {
        for positions in [InputPositions::Sinusoidal, InputPositions::None] {
            let model = built(&translator(&options, positions)).unwrap();
            let beam = BeamConfig {
                beam: 3,
                ..model.search()
            };
            let found = model.translate(&sources, &beam, pass).unwrap();
            for (source, found) in sources.iter().zip(found) {
                let found = found.unwrap();
                let want = log_prob(&model, source, &found.tokens, pass);
                let bound = Tolerance::outputs::<f64>().bound([want]);
                assert!(
                    (found.log_prob - want).abs() <= bound,
                    "{name}: {found:?} {want}"
                );
            }
        }
    }
}

/// Without a table of positions the longest sequence is that of the settings.
#[test]
fn sequences_longer_than_the_longest_are_refused_without_positions_at_the_input() {
    let (_, rotary) = options().into_iter().next_back().unwrap();
    let model = built(&translator(&rotary, InputPositions::None)).unwrap();
    let found = model.translate(&[vec![4; 8]], &model.search(), Pass::evaluation());
    let error = found.unwrap().remove(0).unwrap_err();
    assert!(
        matches!(error, Error::TooLong { got: 8, longest: 7 }),
        "{error}"
    );
}

#[test]
fn options_survive_as_settings_and_what_no_layer_can_be_is_not_read() {
    for (name, options) in options() {
        let config = translator(&options, InputPositions::None);
        let text = serde_json::to_string(&config).unwrap();
        assert!(text.contains(name), "{text}");
        assert_eq!(
            serde_json::from_str::<TranslatorConfig>(&text).unwrap(),
            config
        );
    }
    // Heads of three columns.
    let odd = r#"{"width": 6, "heads": 2, "hidden": 4, "attention": {"mechanism": "softmax"}, "dropout": 0.0,
                  "attention-options": {"rotary": {}}}"#;
    let error = serde_json::from_str::<EncoderLayerConfig>(odd).unwrap_err();
    assert!(error.to_string().contains("even"), "{error}");
    let kv_heads = odd.replace(r#""rotary": {}"#, r#""kv-heads": 3"#);
    let error = serde_json::from_str::<EncoderLayerConfig>(&kv_heads).unwrap_err();
    assert!(error.to_string().contains("kv_heads"), "{error}");
    let mut config = translator(&AttentionOptions::default(), InputPositions::None);
    config.decoder.layer = DecoderLayerConfig {
        cross_attention_options: AttentionOptions {
            window: Some([1, 1]),
            ..Default::default()
        },
        ..config.decoder.layer
    };
    let error = built(&config).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
}
