//! A language model learns, writes what it says it would, and is one file.

use crate::common::{change, layer};
use bochner_attention::{Form, IkanDirect, Pass, Performer, Rotary, Softmax, Variant};
use bochner_models::Error;
use bochner_models::attention::AttentionOptions;
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_models::language_model::{
    LanguageModel, LanguageModelConfig, Sampling, Task, Trainer, TrainingConfig,
};
use bochner_models::prelude::*;
use bochner_models::training::Task as _;
use bochner_nn::alloc_gradients;
use bochner_numerics::{Seed, Tolerance};
use std::ops::Range;

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
fn a_text_is_learned_and_a_saved_model_writes_what_it_wrote() {
    let mut config = config(Softmax::default().into(), NormPlacement::Pre);
    config.encoder.layer.dropout = 0.0;
    config.embedding.dropout = 0.0;
    let training = TrainingConfig {
        learning_rate: 0.01,
        ..Default::default()
    };
    let task = Task::new(text(400), 32, 4).unwrap();
    let mut trainer = Trainer::new(&config, &training, task, Seed::new(1)).unwrap();
    let before = trainer.assess(&text(80)).unwrap();
    for _ in 0..12 {
        trainer.epoch().unwrap();
    }
    let after = trainer.assess(&text(80)).unwrap();
    assert!(before > 1.0 && after < 0.3, "{before} {after}");

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.safetensors");
    trainer.save(&path).unwrap();
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
    let no_repeat_ngram = Some(0);
    let repeating = Sampling {
        no_repeat_ngram,
        ..sampling
    };
    assert!(says(&[1], repeating).contains("`no_repeat_ngram`"));
    for temperature in [-0.1, f64::NAN] {
        let sampling = Sampling {
            temperature,
            ..sampling
        };
        assert!(says(&[1], sampling).contains("`temperature`"));
    }
    for top_p in [0.0, 1.1, f64::NAN] {
        assert!(says(&[1], Sampling { top_p, ..sampling }).contains("`top_p`"));
    }

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

/// A model whose logits are the same at every position.
fn constant(logits: &[f64]) -> LanguageModel<f64> {
    let layer = layer(in_linear_time(), NormPlacement::Pre, 0.0);
    let config = LanguageModelConfig::transformer(logits.len(), EncoderConfig::new(1, layer));
    let mut model = LanguageModel::try_new(&Cpu::default(), &config, Seed::new(1)).unwrap();
    change(&mut model, |name, values: &mut [f64]| match name {
        "encoder.norm.gamma" => values.fill(0.0),
        "encoder.norm.beta" => values[0] = 1.0,
        "embedding.weight" => {
            let rows = values.chunks_mut(8).zip(logits);
            rows.for_each(|(row, &logit)| row[0] = logit);
        }
        _ => {}
    });
    model
}

#[test]
fn tokens_that_repeat_an_n_gram_are_left_out() {
    let model = constant(&[3.0, 2.0, 1.0, 0.0]);
    for (n, prompt, want) in [
        (1, vec![3], Some(0)),
        (1, vec![0, 2], Some(1)),
        (1, vec![0, 1, 2, 3], None),
        (2, vec![0, 0], Some(1)),
        (2, vec![1, 0, 1], Some(1)),
        (3, vec![0, 1, 0, 2, 0, 1], Some(1)),
    ] {
        let sampling = Sampling {
            temperature: 0.0,
            no_repeat_ngram: Some(n),
            ..Sampling::default()
        };
        let mut written = model.generate(&prompt, &sampling, Seed::new(1)).unwrap();
        match (written.next().unwrap(), want) {
            (Ok(got), Some(want)) => assert_eq!(got, want, "{n} {prompt:?}"),
            (Err(Error::Argument(_)), None) => {}
            (got, _) => panic!("{n} {prompt:?}: {got:?}"),
        }
    }
}

#[test]
fn tokens_are_drawn_with_the_probabilities_that_are_left() {
    const DRAWS: usize = 2500;
    let model = constant(&[0.1f64, 0.4, 0.2, 0.3].map(f64::ln));
    let of = |temperature, top_k, top_p| Sampling {
        temperature,
        top_k,
        top_p,
        no_repeat_ngram: None,
    };
    let squares = [0.01, 0.16, 0.04, 0.09].map(|square| square / 0.3);
    let nucleus = [0.0, 4.0 / 9.0, 2.0 / 9.0, 3.0 / 9.0];
    for (sampling, want) in [
        (of(1.0, None, 1.0), [0.1, 0.4, 0.2, 0.3]),
        (of(0.5, None, 1.0), squares),
        (of(1.0, Some(2), 1.0), [0.0, 4.0 / 7.0, 0.0, 3.0 / 7.0]),
        (of(1.0, Some(9), 0.71), nucleus),
        // Two tokens are left, and the first has a share of 0.57.
        (of(1.0, Some(2), 0.5), [0.0, 1.0, 0.0, 0.0]),
        (of(1.0, None, 1e-300), [0.0, 1.0, 0.0, 0.0]),
        (of(0.0, None, 1.0), [0.0, 1.0, 0.0, 0.0]),
        (of(1e-300, None, 1.0), [0.0, 1.0, 0.0, 0.0]),
    ] {
        let mut counts = [0.0; 4];
        let written = model.generate(&[0], &sampling, Seed::new(4)).unwrap();
        for token in written.take(DRAWS) {
            counts[token.unwrap()] += 1.0 / DRAWS as f64;
        }
        for (share, want) in counts.into_iter().zip(want) {
            let spread = (want * (1.0 - want) / DRAWS as f64).sqrt();
            assert!((share - want).abs() <= 4.0 * spread + 1e-9, "{sampling:?}");
        }
    }
}

#[test]
fn logits_that_are_not_finite_are_an_error() {
    let model = constant(&[0.0, f64::INFINITY]);
    let mut written = model
        .generate(&[0], &Sampling::default(), Seed::new(1))
        .unwrap();
    assert!(matches!(written.next().unwrap(), Err(Error::Overflow)));
}

#[test]
fn every_token_but_the_first_is_foretold_once() {
    let layer = layer(Softmax::default().into(), NormPlacement::Pre, 0.0);
    let config = LanguageModelConfig::transformer(17, EncoderConfig::new(1, layer));
    for (count, context) in [(2, 1), (2, 5), (17, 4), (17, 16), (17, 40)] {
        let task = Task::new((0..count).collect(), context, 3).unwrap();
        let model = task.model(&config, Seed::new(1)).unwrap();
        let mut seeds = (0..).map(Seed::new);
        for _ in 0..20 {
            let mut foretold = Vec::new();
            for batch in task.batches(&mut || seeds.next().unwrap()).unwrap() {
                let fits = |window: &Range<usize>| (1..=context).contains(&window.len());
                assert!(batch.iter().all(fits));
                let gradients = alloc_gradients(&model).unwrap();
                let (_, labelled) = task
                    .forward(&model, &batch, gradients, Seed::new(2))
                    .unwrap();
                // The token at each place is its number.
                let width = batch.iter().map(Range::len).max().unwrap();
                for &(row, token) in &labelled {
                    assert_eq!(batch[row / width].start + row % width + 1, token);
                }
                foretold.extend(labelled.into_iter().map(|(_, token)| token));
            }
            foretold.sort_unstable();
            assert!(foretold.into_iter().eq(1..count));
        }
    }
}
