//! Learns to translate from two files of your own, line by line, and translates what it reads:
//!
//! ```sh
//! cargo run --release -p bochner-models --example translate -- train.de train.en 20 < test.de
//! ```
//!
//! The model is saved as `translator.safetensors` after every epoch, and goes on from there the next time.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use bochner_attention::Softmax;
use bochner_datasets::translation::parse;
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_models::training::TrainingConfig;
use bochner_models::translator::{Pair, Task, Trainer, TranslatorConfig};
use bochner_numerics::Seed;
use bochner_text::{BatchConfig, BeamConfig, Marks, SubwordConfig, Subwords, TokenCounts};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [source, target, epochs]: [String; 3] = std::env::args()
        .skip(1)
        .collect::<Vec<_>>()
        .try_into()
        .map_err(|_| "SOURCE TARGET EPOCHS")?;
    let files = [&source, &target].map(std::fs::read);
    let [of_source, of_target] = files;
    let text = parse([&source, &target], [&of_source?, &of_target?])?;
    let words = TokenCounts::of_words(text.source.iter().chain(&text.target).map(String::as_str));
    let subwords = Subwords::learn(
        &words,
        &SubwordConfig {
            merges: 3000,
            ..Default::default()
        },
    )?
    .subwords;
    let vocabulary = subwords.vocabulary(Marks::StartAndEnd)?;
    let numbers = |line: &str| vocabulary.encode(subwords.encode(line));
    let pairs = text.source.iter().zip(&text.target);
    let pairs = pairs.map(|(source, target)| Pair {
        source: numbers(source),
        target: numbers(target),
    });
    let batches = BatchConfig {
        tokens: 2000,
        ..Default::default()
    };
    let task = Task::new(
        pairs
            .filter(|pair| pair.source.len().max(pair.target.len()) < 100)
            .collect(),
        batches,
    )?;

    let layer = EncoderLayerConfig {
        width: 128,
        heads: 4,
        hidden: 256,
        attention: Softmax::default().into(),
        dropout: 0.1,
        norm: NormPlacement::Pre,
    };
    let encoder = EncoderConfig { layers: 2, layer };
    let config =
        TranslatorConfig::transformer(&vocabulary, 100, encoder, Softmax::default().into())?;
    let training = TrainingConfig {
        clip_norm: Some(1.0),
        ..Default::default()
    };
    let mut trainer = Trainer::new(
        &config,
        &training,
        task.with_label_smoothing(0.1)?,
        Seed::new(1),
    )?;
    let saved = Path::new("translator.safetensors");
    if saved.exists() {
        trainer.resume(saved)?;
    }
    while trainer.epochs_done() < epochs.parse()? {
        eprintln!(
            "epoch {}: {:.3}",
            trainer.epochs_done() + 1,
            trainer.epoch()?.error
        );
        trainer.save(saved)?;
    }
    for line in std::io::stdin().lines() {
        let found = trainer.translate(
            &[numbers(&line?)],
            &BeamConfig {
                max_length: 100,
                ..Default::default()
            },
        )?;
        println!(
            "{}",
            Subwords::decode(&vocabulary.decode(&found[0].tokens)?)
        );
    }
    Ok(())
}
