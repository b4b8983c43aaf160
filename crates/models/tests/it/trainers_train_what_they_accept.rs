//! Every mechanism with every option in every model: a trainer refuses the combination when it is made, or it trains.

use crate::common::layer;
use crate::tiny;
use crate::translators;
use bochner_attention::{
    Copula, Form, Mikan, PositionBias, Posterior, Rotary, Softmax, Variant, registry,
};
use bochner_models::Error;
use bochner_models::attention::AttentionOptions;
use bochner_models::classifier::TextClassifierConfig;
use bochner_models::datapoints::{Between, Column, Masking, Normalised, NptConfig};
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_models::language_model::{self, LanguageModelConfig, Sampling};
use bochner_models::next_event::NextEventConfig;
use bochner_models::training::{Task, Trainer, TrainingConfig};
use bochner_numerics::Seed;

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
    EncoderConfig::new(1, layer)
}

/// Checks that a training which is accepted takes its first epoch.
fn trained<T: Task>(config: &T::Config, task: T, name: &str) -> Result<Trainer<T>, Error> {
    let training = TrainingConfig::default();
    let mut trainer = Trainer::new(config, &training, task, Seed::new(1))?;
    let report = trainer.epoch();
    assert!(report.is_ok(), "{name}: {:?}", report.err());
    Ok(trainer)
}

/// Trains models of one encoder: a language model, one of next events, and a classifier.
fn of_encoder(encoder: &EncoderConfig, name: &str) -> [Result<(), Error>; 3] {
    use bochner_attention::Error as Attention;
    let config = LanguageModelConfig::transformer(5, encoder.clone());
    let writes = |trainer: Trainer<language_model::Task>| {
        let (model, sampling) = (trainer.model(), Sampling::default());
        match model.generate(&[1, 2], &sampling, Seed::new(2)) {
            Ok(mut written) => drop(written.next().unwrap().unwrap()),
            // Not every mechanism that can be causal decodes token by token.
            Err(Error::Attention(Attention::Unsupported { .. })) => {}
            Err(error) => panic!("{name}: {error}"),
        }
    };
    let text = trained(&config, tiny::text(30), &format!("text {name}")).map(writes);
    let config = NextEventConfig {
        kinds: 4,
        encoder: encoder.clone(),
        time: vec![],
    };
    let events = trained(&config, tiny::events(1.0), &format!("events {name}"));
    let config = TextClassifierConfig::transformer(10, 2, 9, encoder.clone());
    let sentences = tiny::sentences([0, 1, 0]);
    let classes = trained(&config, sentences, &format!("classifier {name}"));
    [text, events.map(drop), classes.map(drop)]
}

/// Trains a translator with a mechanism and options in one of its three places.
fn translates(
    place: usize,
    attention: &Variant,
    options: &AttentionOptions,
    [dropout, of_weights]: [f64; 2],
) -> Result<(), Error> {
    let mut slots = [(); 3].map(|()| Softmax::default().into());
    slots[place] = attention.clone();
    let mut config = translators::config(slots, 8, [12, 7]);
    config.encoder.layer.dropout = dropout;
    config.decoder.layers = 1;
    config.decoder.layer.dropout = dropout;
    config.attention_dropout = (of_weights != dropout).then_some(of_weights);
    let place_of_options = match place {
        0 => &mut config.encoder.layer.attention_options,
        1 => &mut config.decoder.layer.attention_options,
        _ => &mut config.decoder.layer.cross_attention_options,
    };
    *place_of_options = options.clone();
    let name = format!("translator {place} {dropout} {of_weights} {attention:?} {options:?}");
    let trainer = trained(&config, tiny::pairs(9), &name)?;
    let found = trainer.translate(&[vec![4, 5]], &trainer.model().search());
    let found = found.map(|mut found| found.remove(0));
    assert!(matches!(found, Ok(Ok(_))), "{name}: {found:?}");
    Ok(())
}

fn regresses(attention: &Variant, dropout: f64) -> Result<(), Error> {
    let config = tiny::regressor(attention.clone(), dropout);
    let name = format!("regressor {attention:?} {dropout}");
    trained(&config, tiny::rows([0, 2, 3, 5]), &name).map(drop)
}

fn fills_in(
    attention: &Variant,
    dropout: f64,
    between: Between,
    normalised: Normalised,
) -> Result<(), Error> {
    let config = NptConfig {
        normalised,
        dropout,
        ..tiny::npt(&[Column::Number; 2], &[between], Some(attention.clone()))
    };
    let name = format!("table {attention:?} {dropout} {between:?} {normalised:?}");
    trained(&config, tiny::table(4.0, Masking::NONE), &name).map(drop)
}

/// Each rate of dropout goes with each mechanism, option and place; what is not of the attention takes turns.
#[test]
fn what_a_trainer_accepts_it_trains() {
    let mut all = Vec::new();
    for (i, attention) in mechanisms().iter().enumerate() {
        for dropout in [0.0, 0.1] {
            for (j, options) in options().iter().enumerate() {
                let norm = [NormPlacement::Pre, NormPlacement::Post][(i + j) % 2];
                let encoder = encoder(attention, options, dropout, norm);
                let name = format!("{attention:?} {dropout} {options:?}");
                all.extend(of_encoder(&encoder, &name));
                for place in 0..3 {
                    let other = [dropout, 0.1 - dropout][(i + j + place) % 2];
                    all.push(translates(place, attention, options, [dropout, other]));
                }
            }
            all.push(regresses(attention, dropout));
            for between in [Between::Datapoints, Between::Attributes, Between::Nothing] {
                for normalised in [Normalised::All, Normalised::Queries] {
                    all.push(fills_in(attention, dropout, between, normalised));
                }
            }
        }
    }
    let taken = all.iter().filter(|result| result.is_ok()).count();
    let refused = all.len() - taken;
    assert!(taken > 1000 && refused > 500, "{taken}, {refused}");
}
