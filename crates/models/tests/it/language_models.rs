//! A language model learns, writes what it says it would, and is one file.

use bochner_attention::{Form, IkanDirect, Pass, Performer, Rotary, Softmax, Variant};
use bochner_models::Error;
use bochner_models::attention::AttentionOptions;
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_models::language_model::{
    LanguageModel, LanguageModelConfig, Sampling, Task, Trainer, TrainingConfig,
};
use bochner_models::prelude::*;
use bochner_numerics::{Seed, Tolerance};

const TOKENS: usize = 7;

fn config(attention: Variant, norm: NormPlacement) -> LanguageModelConfig {
    let attention_options = AttentionOptions {
        rotary: Some(Rotary::default()),
        ..Default::default()
    };
    let layer = EncoderLayerConfig {
        width: 16,
        heads: 2,
        hidden: 24,
        attention,
        attention_options,
        dropout: 0.1,
        norm,
        ..Default::default()
    };
    LanguageModelConfig::transformer(TOKENS, EncoderConfig::new(2, layer))
}

fn in_linear_time() -> Variant {
    IkanDirect {
        points: 4,
        form: Form::LinearTime,
        ..Default::default()
    }
    .into()
}

fn configs() -> Vec<LanguageModelConfig> {
    let softmax = || Softmax::default().into();
    vec![
        config(softmax(), NormPlacement::Pre),
        config(softmax(), NormPlacement::Post),
        config(in_linear_time(), NormPlacement::Pre),
        config(Performer::default().into(), NormPlacement::Pre),
    ]
}

#[test]
fn the_logits_of_a_generator_are_those_of_the_whole_text() {
    for config in configs() {
        let device = Cpu::default();
        let model: LanguageModel<f64> =
            LanguageModel::try_new(&device, &config, Seed::new(1)).unwrap();
        let seed = Seed::new(3);
        let mut written = vec![2, 0, 5];
        let sampling = Sampling::default();
        let mut generator = model.generate(&written, &sampling, seed).unwrap();
        for _ in 0..9 {
            let shape = (1, written.len());
            let tokens = device.tensor_from_vec(written.clone(), shape);
            let seed = seed.child("pass");
            let pass = Pass::Evaluation { seed };
            let whole = model.apply(tokens, &[written.len()], pass).unwrap().output;
            let whole = whole.as_vec();
            let want = &whole[whole.len() - TOKENS..];
            let bound = Tolerance::outputs::<f64>().bound(want.iter().copied());
            for (got, want) in generator.logits().iter().zip(want) {
                assert!((got - want).abs() <= bound, "{config:?}: {got} {want}");
            }
            written.push(generator.next().unwrap().unwrap());
        }
        let again = model.generate(&written[..3], &sampling, seed).unwrap();
        let again: Result<Vec<_>, _> = again.take(9).collect();
        assert_eq!(again.unwrap(), written[3..]);
    }
}

#[test]
fn a_state_of_constant_size_stays_constant() {
    let held = |attention| {
        let config = config(attention, NormPlacement::Pre);
        let model: LanguageModel<f32> =
            LanguageModel::try_new(&Cpu::default(), &config, Seed::new(1)).unwrap();
        let mut generator = model
            .generate(&[1], &Sampling::default(), Seed::new(2))
            .unwrap();
        [10, 200].map(|more| {
            generator
                .by_ref()
                .take(more)
                .for_each(|token| assert!(token.is_ok()));
            generator.held()
        })
    };
    let [early, late] = held(in_linear_time());
    assert!(early == late && early > 0);
    let [early, late] = held(Softmax::default().into());
    assert_eq!(late * 11, early * 211);
}

fn text(length: usize) -> Vec<usize> {
    // The next token follows from the two before it.
    let mut text = vec![1, 3];
    while text.len() < length {
        text.push((text[text.len() - 1] + 2 * text[text.len() - 2]) % TOKENS);
    }
    text
}

#[test]
fn a_text_is_learned_and_a_run_goes_on_where_it_stopped() {
    let mut config = config(Softmax::default().into(), NormPlacement::Pre);
    config.encoder.layer.dropout = 0.0;
    config.embedding.dropout = 0.0;
    let training = TrainingConfig {
        learning_rate: 0.01,
        ..Default::default()
    };
    let task = || Task::new(text(400), 32, 4).unwrap();
    let new = || Trainer::new(&config, &training, task(), Seed::new(1)).unwrap();
    let mut trainer = new();
    let before = trainer.assess(&text(80)).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.safetensors");
    for epoch in 0..12 {
        trainer.epoch().unwrap();
        if epoch == 8 {
            trainer.save(&path).unwrap();
        }
    }
    let after = trainer.assess(&text(80)).unwrap();
    assert!(before > 1.0 && after < 0.3, "{before} {after}");

    let mut resumed = new();
    resumed.resume(&path).unwrap();
    for _ in 9..12 {
        resumed.epoch().unwrap();
    }
    assert_eq!(resumed.assess(&text(80)).unwrap(), after);

    // Saved as a model of its own.
    let file = directory.path().join("model.safetensors");
    trainer.model().save(&file).unwrap();
    let loaded = LanguageModel::load(&file).unwrap();
    assert_eq!(loaded.config(), &config);
    let greedy = Sampling {
        temperature: 0.0,
        ..Default::default()
    };
    let write = |model: &LanguageModel<f32>| {
        let written = model.generate(&[1, 3, 5], &greedy, Seed::new(2)).unwrap();
        written.take(20).collect::<Result<Vec<_>, _>>().unwrap()
    };
    assert_eq!(write(&loaded), write(trainer.model()));
    let refused = LanguageModel::load(&path).unwrap_err();
    assert!(matches!(refused, Error::TrainingRun { .. }), "{refused}");
}

#[test]
fn misuse_is_named() {
    let usual = config(Softmax::default().into(), NormPlacement::Pre);
    let model: LanguageModel<f32> =
        LanguageModel::try_new(&Cpu::default(), &usual, Seed::new(1)).unwrap();
    let seed = Seed::new(2);
    let says = |prompt: &[usize], sampling: Sampling| {
        let refused = model.generate(prompt, &sampling, seed).map(drop);
        refused.unwrap_err().to_string()
    };
    let sampling = Sampling::default();
    assert!(says(&[], sampling).contains("prompt"));
    assert!(says(&[TOKENS], sampling).contains("`words`"));
    let top_k = Some(0);
    assert!(says(&[1], Sampling { top_k, ..sampling }).contains("`top_k`"));
    let temperature = -1.0;
    assert!(
        says(
            &[1],
            Sampling {
                temperature,
                ..sampling
            }
        )
        .contains("`temperature`")
    );

    for (tokens, context, windows, name) in [
        (1, 4, 4, "tokens of the text"),
        (9, 0, 4, "context"),
        (9, 4, 0, "windows"),
    ] {
        let refused = Task::new(vec![0; tokens], context, windows).unwrap_err();
        assert!(refused.to_string().contains(name), "{refused}");
    }
    let task = Task::new(vec![0, TOKENS], 4, 4).unwrap();
    let refused = Trainer::new(&usual, &TrainingConfig::default(), task, seed).unwrap_err();
    assert!(
        refused.to_string().contains("tokens of the text"),
        "{refused}"
    );
}
