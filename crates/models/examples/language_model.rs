//! Learns the characters of a text file and writes 500 more of them:
//!
//! ```sh
//! cargo run --release -p bochner-models --example language_model -- text.txt
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr)]

use bochner_attention::{Form, IkanDirect};
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_models::language_model::*;
use bochner_numerics::Seed;
use std::{collections::BTreeSet, error::Error, fs, thread};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("give a text file")?;
    println!("{}", write(&fs::read_to_string(path)?, 3, 500)?);
    Ok(())
}

/// Learns from a text and writes `count` characters in its manner.
pub(crate) fn write(text: &str, epochs: usize, count: usize) -> Result<String, Box<dyn Error>> {
    let alphabet = Vec::from_iter(text.chars().collect::<BTreeSet<_>>());
    let tokens = text.chars().flat_map(|c| alphabet.binary_search(&c));
    let tokens = Vec::from_iter(tokens);
    let (train, held_out) = tokens.split_at(tokens.len() / 10 * 9);

    // A kernel in linear time: its state has a constant size, however long the model writes. It has no weights to drop.
    let mut kernel = IkanDirect::default();
    (kernel.points, kernel.form) = (16, Form::LinearTime);
    let mut layer = EncoderLayerConfig::default();
    (layer.width, layer.heads, layer.hidden) = (64, 4, 256);
    (layer.attention, layer.norm, layer.dropout) = (kernel.into(), NormPlacement::Pre, 0.0);
    let encoder = EncoderConfig::new(2, layer);
    let config = LanguageModelConfig::transformer(alphabet.len(), encoder);
    let task = Task::new(train.to_vec(), 128, 16)?;
    // Each thread takes a part of every batch.
    let mut training = TrainingConfig::default();
    (training.learning_rate, training.parts) = (2e-3, thread::available_parallelism()?);
    let mut trainer = Trainer::new(&config, &training, task, Seed::new(1))?;
    for epoch in 1..=epochs {
        trainer.epoch()?;
        let bits = trainer.assess(held_out)? / std::f64::consts::LN_2;
        eprintln!("epoch {epoch}: {bits:.3} bits a character");
    }
    let mut sampling = Sampling::default();
    (sampling.temperature, sampling.top_p) = (0.8, 0.95);
    let model = trainer.model();
    let written = model.generate(&train[..1], &sampling, Seed::new(2))?;
    let written = written.take(count).map(|token| Ok(alphabet[token?]));
    written.collect()
}
