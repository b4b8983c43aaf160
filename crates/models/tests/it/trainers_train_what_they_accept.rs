//! Every mechanism with every option in every model: a trainer refuses the combination when it is made, or it trains.

use crate::common::layer;
use crate::translators;
use bochner_attention::{
    Copula, Form, Mikan, PositionBias, Posterior, Rotary, Softmax, Variant, registry,
};
use bochner_models::Error;
use bochner_models::attention::AttentionOptions;
use bochner_models::classifier::{self, TextClassifierConfig};
use bochner_models::datapoints::{self, Between, Column, Example, Masking, Normalised, NptConfig};
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_models::language_model::{self, LanguageModelConfig, Sampling};
use bochner_models::next_event::{self, Events, NextEventConfig};
use bochner_models::regressor::{self, RegressorConfig};
use bochner_models::training::{Task, Trainer, TrainingConfig};
use bochner_models::translator::{self, Pair};
use bochner_numerics::Seed;
use bochner_text::BatchConfig;
use ndarray::{Array1, Array2};

/// The mechanisms of the registry in each of their forms, and those that draw without regard to the sequence.
fn mechanisms() -> Vec<Variant> {
    let unconditional = Mikan {
        posterior: Posterior::Unconditional,
        copula: Copula::Free,
        ..Mikan::default()
    };
    let usual = registry().into_iter().chain([unconditional.into()]);
    usual
        .flat_map(|variant| {
            let forms = [Form::Pairwise, Form::LinearTime].into_iter();
            let others = forms.filter_map(|form| variant.with_form(form).ok());
            let others: Vec<_> = others.collect();
            others.into_iter().chain([variant])
        })
        .collect()
}

fn options() -> Vec<AttentionOptions> {
    let with = |change: &dyn Fn(&mut AttentionOptions)| {
        let mut options = AttentionOptions::default();
        change(&mut options);
        options
    };
    vec![
        with(&|_| ()),
        with(&|options| options.kv_heads = Some(1)),
        with(&|options| options.key_width = Some(6)),
        with(&|options| options.value_width = Some(3)),
        with(&|options| options.window = Some([2, 2])),
        with(&|options| options.window = Some([usize::MAX, 0])),
        with(&|options| options.position_bias = PositionBias::Alibi),
        with(&|options| options.position_bias = PositionBias::Learned { reach: 2 }),
        with(&|options| options.rotary = Some(Rotary::default())),
    ]
}

fn encoder(
    attention: &Variant,
    attention_options: &AttentionOptions,
    dropout: f64,
    norm: NormPlacement,
) -> EncoderConfig {
    let layer = EncoderLayerConfig {
        attention_options: attention_options.clone(),
        ..layer(attention.clone(), norm, dropout)
    };
    EncoderConfig::new(2, layer)
}

/// Trains an epoch if the trainer accepts the settings; returns the trainer, or the refusal.
fn trained<T: Task>(config: &T::Config, task: T, name: &str) -> Result<Trainer<T>, Error> {
    let training = TrainingConfig::default();
    let mut trainer = Trainer::new(config, &training, task, Seed::new(1))?;
    let report = trainer.epoch();
    assert!(report.is_ok(), "{name}: {:?}", report.err());
    Ok(trainer)
}

fn is_unsupported(error: &Error) -> bool {
    use bochner_attention::Error as Attention;
    matches!(error, Error::Attention(Attention::Unsupported { .. }))
}

#[test]
fn what_a_trainer_accepts_it_trains() {
    let (mut taken, mut refused) = (0, 0);
    let mut count = |result: Result<(), Error>| match result {
        Ok(()) => taken += 1,
        Err(_) => refused += 1,
    };
    for attention in mechanisms() {
        for dropout in [0.0, 0.1] {
            for options in options() {
                let name = format!("{attention:?} {dropout} {options:?}");
                for norm in [NormPlacement::Pre, NormPlacement::Post] {
                    let encoder = encoder(&attention, &options, dropout, norm);
                    let config = LanguageModelConfig::transformer(5, encoder.clone());
                    let text = (0..30).map(|i| i % 5).collect();
                    let task = language_model::Task::new(text, 6, 3).unwrap();
                    count(
                        trained(&config, task, &format!("lm {name}")).map(|trainer| {
                            let written = trainer.model().generate(
                                &[1, 2],
                                &Sampling::default(),
                                Seed::new(2),
                            );
                            match written {
                                Ok(mut written) => drop(written.next().unwrap().unwrap()),
                                // Not every mechanism that can be causal decodes token by token.
                                Err(error) => assert!(is_unsupported(&error), "{name}: {error}"),
                            }
                        }),
                    );

                    let config = NextEventConfig {
                        kinds: 4,
                        encoder: encoder.clone(),
                        time: vec![],
                    };
                    let events = vec![
                        Events {
                            kinds: vec![0, 1, 2, 3],
                            times: vec![0.0, 1.0, 2.0, 3.0],
                        },
                        Events {
                            kinds: vec![3, 2],
                            times: vec![0.0, 1.0],
                        },
                    ];
                    let task = next_event::Task::new(events, BatchConfig::default()).unwrap();
                    count(trained(&config, task, &format!("next {name}")).map(drop));

                    let config = TextClassifierConfig::transformer(10, 2, 9, encoder);
                    let sentences = vec![vec![4, 5, 6, 7, 8, 9], vec![9, 8, 7], vec![]];
                    let batches = BatchConfig::default();
                    let task = classifier::Task::new(sentences, vec![0, 1, 0], batches).unwrap();
                    count(trained(&config, task, &format!("classifier {name}")).map(drop));
                }
                let softmax = || Variant::from(Softmax::default());
                for place in 0..3 {
                    let mut slots = [softmax(), softmax(), softmax()];
                    slots[place] = attention.clone();
                    for attention_dropout in [None, Some(0.0), Some(0.1)] {
                        let mut config = translators::config(slots.clone(), 8, [12, 7]);
                        config.encoder.layer.dropout = dropout;
                        config.decoder.layer.dropout = dropout;
                        config.attention_dropout = attention_dropout;
                        let place_of_options = match place {
                            0 => &mut config.encoder.layer.attention_options,
                            1 => &mut config.decoder.layer.attention_options,
                            _ => &mut config.decoder.layer.cross_attention_options,
                        };
                        *place_of_options = options.clone();
                        let pair = |source: Vec<usize>| Pair {
                            target: source.iter().rev().copied().collect(),
                            source,
                        };
                        let pairs = vec![pair(vec![4, 5, 6, 7]), pair(vec![8, 9])];
                        let task = translator::Task::new(pairs, BatchConfig::default()).unwrap();
                        let name = format!("translator {place} {attention_dropout:?} {name}");
                        count(trained(&config, task, &name).map(|trainer| {
                            let model = trainer.model();
                            let found = trainer.translate(&[vec![4, 5]], &model.search());
                            let found = found.map(|mut found| found.remove(0));
                            assert!(matches!(found, Ok(Ok(_))), "{name}: {found:?}");
                        }));
                    }
                }
            }
            let name = format!("{attention:?} {dropout}");
            let config = RegressorConfig {
                width: 8,
                heads: 2,
                hidden: 12,
                dropout,
                ..RegressorConfig::new(1, attention.clone())
            };
            let x = Array2::from_shape_fn((6, 1), |(i, _)| i as f32);
            let y = Array1::from_shape_fn(6, |i| (i * i) as f32);
            let task = regressor::Task::new(x, y, vec![0, 2, 3, 5]).unwrap();
            count(trained(&config, task, &format!("regressor {name}")).map(drop));
            for between in [Between::Datapoints, Between::Attributes, Between::Nothing] {
                for normalised in [Normalised::All, Normalised::Queries] {
                    let values = Array2::from_shape_fn((4, 2), |(i, j)| (i + j) as f32);
                    let is_known = Array2::from_shape_fn((4, 2), |cell| cell != (3, 1));
                    let columns = vec![Column::Number; 2];
                    let table = datapoints::Table::new(columns.clone(), values, is_known).unwrap();
                    let example = Example::new(table, vec![([3, 1], 4.0)]).unwrap();
                    let task = datapoints::Task::new(vec![example], Masking::NONE).unwrap();
                    let config = NptConfig {
                        columns,
                        width: 4,
                        heads: 2,
                        blocks: vec![between],
                        attention: Some(attention.clone()),
                        normalised,
                        dropout,
                        epsilon: 1e-12,
                    };
                    count(
                        trained(
                            &config,
                            task,
                            &format!("npt {between:?} {normalised:?} {name}"),
                        )
                        .map(drop),
                    );
                }
            }
        }
    }
    assert!(taken > 1000 && refused > 500, "{taken}, {refused}");
}
