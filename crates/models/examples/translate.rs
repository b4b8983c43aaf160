//! Learns to translate from two files of your own, line by line, and translates what it reads:
//!
//! ```sh
//! cargo run --release -p bochner-models --example translate -- train.de train.en 20 < test.de
//! ```
//!
//! The model is saved as `translator.safetensors` after every epoch, and goes on from there the next time.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use bochner_attention::Softmax;
use bochner_models::decoder::{DecoderConfig, DecoderLayerConfig};
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_models::training::TrainingConfig;
use bochner_models::translator::{Pair, Task, Trainer, TranslatorConfig};
use bochner_numerics::Seed;
use bochner_text::{BatchConfig, BeamConfig, Marks, SubwordConfig, Subwords, TokenCounts, lines};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [source, target, epochs]: [String; 3] = std::env::args()
        .skip(1)
        .collect::<Vec<_>>()
        .try_into()
        .map_err(|_| "SOURCE TARGET EPOCHS")?;
    let bytes = [std::fs::read(&source)?, std::fs::read(&target)?];
    let sides = [lines(&source, &bytes[0])?, lines(&target, &bytes[1])?];
    if sides[0].len() != sides[1].len() {
        return Err(format!(
            "{source} has {} lines, {target} {}",
            sides[0].len(),
            sides[1].len()
        )
        .into());
    }
    let words = TokenCounts::of_words(sides.iter().flatten().copied());
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
    let pairs = sides[0].iter().zip(&sides[1]);
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

    let (width, heads, hidden, dropout) = (128, 4, 256, 0.1);
    let [attention, itself, cross_attention] = [(); 3].map(|()| Softmax {}.into());
    let encoder = EncoderLayerConfig {
        width,
        heads,
        hidden,
        attention,
        dropout,
        norm: NormPlacement::Pre,
    };
    let decoder = DecoderLayerConfig {
        width,
        heads,
        hidden,
        attention: itself,
        cross_attention,
        dropout,
    };
    let config = TranslatorConfig {
        tokens: vocabulary.len(),
        start: vocabulary.start().ok_or("no start")?,
        end: vocabulary.end().ok_or("no end")?,
        longest: 100,
        encoder: EncoderConfig {
            layers: 2,
            layer: encoder,
        },
        decoder: DecoderConfig {
            layers: 2,
            layer: decoder,
        },
    };
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
