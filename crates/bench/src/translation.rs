//! Training steps of a translator, and 64 sentences translated by it.
//!
//! Shapes are those of the peers: (B, S, T, width, heads, hidden, layers, words), where T is the longest target with one
//! mark in training, and the number of tokens that every translation has.

use crate::Error;
use crate::workload::{Pass, Run, Workload};
use bochner_attention::{IkanDirect, Softmax, Variant};
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_models::translator::{
    Pair, Task, Trainer, TrainingConfig, Translator, TranslatorConfig,
};
use bochner_nn::Parameters;
use bochner_numerics::Seed;
use bochner_text::{BatchConfig, BeamConfig, Counted, Marks, Vocabulary};
use dfdx::tensor::Cpu;
use rand::Rng;
use std::hint::black_box;
use std::num::NonZeroUsize;

const POINTS: usize = 32;
const DROPOUT: f64 = 0.1;

/// The smallest token that is a word: padding, unknown words, start and end come before.
const FIRST_WORD: usize = 4;

/// The parts of a batch that ours computes side by side.
const PARTS: NonZeroUsize = NonZeroUsize::new(2).unwrap();

/// The hypotheses of a search.
const BEAM: usize = 5;

const STEPS: [[usize; 8]; 2] = [
    [92, 24, 24, 128, 4, 256, 2, 4000],
    [92, 24, 24, 256, 4, 512, 3, 8000],
];

const DECODING: [[usize; 8]; 2] = [
    [64, 16, 20, 64, 4, 128, 2, 4000],
    [64, 20, 25, 256, 4, 512, 3, 8000],
];

/// Steps with two mechanisms, and translations with softmax attention.
pub(crate) fn workloads() -> Vec<Workload> {
    let direct = IkanDirect {
        p: 1.5,
        points: POINTS,
        ..Default::default()
    };
    let kinds: [(_, Variant); 2] = [
        ("translator-step", Softmax::default().into()),
        ("translator-step-ikan-direct", direct.into()),
    ];
    let steps = kinds.iter();
    let steps = steps.flat_map(|(name, attention)| STEPS.map(|shape| step(name, attention, shape)));
    steps.chain(DECODING.map(decoding)).collect()
}

fn step(name: &'static str, attention: &Variant, shape: [usize; 8]) -> Workload {
    let [batch, _, _, width, .., words] = shape;
    let passes = vec![Pass::new("step", 28.0 * (words * width) as f64)];
    let lengths = lengths(batch, shape[2] + 1);
    let tokens: usize = lengths.iter().map(|length| length - 1).sum();
    let attention = attention.clone();
    let start = move || Ok(vec![training(shape, attention.clone())?]);
    let workload = Workload::new(name, shape, passes, start);
    workload.with("dropout", DROPOUT).with("tokens", tokens)
}

/// Lengths from four fifths of the longest to the longest.
fn lengths(batch: usize, longest: usize) -> Vec<usize> {
    let least = 0.8 * longest as f64;
    let step = (longest as f64 - least) / (batch - 1) as f64;
    let lengths = (0..batch).map(|at| (least + step * at as f64).round() as usize);
    lengths.collect()
}

fn config(
    [_, s, t, width, heads, hidden, layers, words]: [usize; 8],
    attention: Variant,
    dropout: f64,
) -> Result<TranslatorConfig, Error> {
    let names = (FIRST_WORD..words).map(|word| format!("w{word}"));
    let vocabulary = Vocabulary::from_words(names, Marks::StartAndEnd)?;
    let layer = EncoderLayerConfig {
        width,
        heads,
        hidden,
        attention: attention.clone(),
        dropout,
        norm: NormPlacement::Pre,
        ..Default::default()
    };
    let encoder = EncoderConfig::new(layers, layer);
    let config = TranslatorConfig::transformer(&vocabulary, s.max(t) + 1, encoder, attention)?;
    Ok(config)
}

fn training(shape: [usize; 8], attention: Variant) -> Result<Run, Error> {
    let mut trainer = trainer(shape, attention)?;
    Ok(Box::new(move || {
        trainer.epoch()?;
        Ok(())
    }))
}

/// A trainer whose pairs are one batch, so that an epoch is a step.
fn trainer(shape: [usize; 8], attention: Variant) -> Result<Trainer, Error> {
    let [batch, s, t, .., words] = shape;
    let mut stream = Seed::new(2).stream("data");
    let mut line = |length| {
        let line = (0..length).map(|_| stream.gen_range(FIRST_WORD..words));
        line.collect::<Vec<usize>>()
    };
    let pairs = lengths(batch, s).into_iter().zip(lengths(batch, t + 1));
    let pairs = pairs.map(|(source, target)| Pair {
        source: line(source),
        target: line(target - 2),
    });
    let batches = BatchConfig {
        tokens: batch * t,
        counted: Counted::LastSide,
        ..Default::default()
    };
    let task = Task::new(pairs.collect(), batches)?.with_label_smoothing(0.1)?;
    let config = config(shape, attention, DROPOUT)?;
    let training = TrainingConfig {
        parts: PARTS,
        ..Default::default()
    };
    Ok(Trainer::new(&config, &training, task, Seed::new(1))?)
}

fn decoding(shape: [usize; 8]) -> Workload {
    let [batch, _, length, ..] = shape;
    let passes = ["greedy", "beam5"].map(|name| Pass::new(name, 0.0)).into();
    let start = move || translating(shape);
    Workload::new("translate", shape, passes, start).with("tokens", batch * length)
}

/// Searches for translations all of which have the longest length: the end is improbable, since its row is zero.
fn translating(shape: [usize; 8]) -> Result<Vec<Run>, Error> {
    let [batch, s, t, width, .., words] = shape;
    let config = config(shape, Softmax::default().into(), 0.0)?;
    let mut model: Translator<f32> = Translator::try_new(&Cpu::default(), &config, Seed::new(1))?;
    model.for_each_mut("", &mut |name, parameter| {
        if name.starts_with("embedding") {
            let mut values = Vec::new();
            parameter.read_into(&mut values);
            values[config.end * width..][..width].fill(0.0);
            parameter.write(&values);
        }
    });
    let mut stream = Seed::new(2).stream("data");
    let sources: Vec<Vec<usize>> = (0..batch)
        .map(|_| {
            (0..s)
                .map(|_| stream.gen_range(FIRST_WORD..words))
                .collect()
        })
        .collect();
    let search = |beam| {
        let (model, sources) = (model.clone(), sources.clone());
        let beam = BeamConfig {
            beam,
            alpha: 0.0,
            max_length: t + 1,
            ..BeamConfig::default()
        };
        let pass = bochner_attention::Pass::Evaluation { seed: Seed::new(1) };
        let run: Run = Box::new(move || {
            let found = model.translate(&sources, &beam, pass)?.into_iter();
            let found = found.collect::<Result<Vec<_>, _>>()?;
            // A peer writes as many tokens, so that the work is the same.
            assert!(found.iter().all(|found| found.tokens.len() == t));
            black_box(found);
            Ok(())
        });
        run
    };
    Ok(vec![search(1), search(BEAM)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_translation_has_the_longest_length() {
        let mut runs = translating([3, 4, 5, 16, 2, 24, 1, 60]).unwrap();
        for run in &mut runs {
            run().unwrap();
        }
    }

    #[test]
    fn an_epoch_is_one_step() {
        for batch in [4, 92] {
            let shape = [batch, 6, 6, 16, 2, 24, 1, 60];
            let mut trainer = trainer(shape, Softmax::default().into()).unwrap();
            trainer.epoch().unwrap();
            assert_eq!(trainer.steps_done(), 1);
        }
        assert_eq!(lengths(92, 25)[0], 20);
        assert_eq!(lengths(92, 25)[91], 25);
    }
}
