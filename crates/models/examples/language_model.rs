//! Learns the characters of a text file and writes 500 more of them:
//!
//! ```sh
//! cargo run --release -p bochner-models --example language_model -- text.txt
//! ```

#![allow(clippy::print_stdout)]

use bochner_attention::{Form, IkanDirect};
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_models::language_model::*;
use bochner_numerics::Seed;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("give a text file")?;
    let text: Vec<char> = std::fs::read_to_string(path)?.chars().collect();
    let mut alphabet = text.clone();
    alphabet.sort_unstable();
    alphabet.dedup();
    let tokens: Vec<usize> = text
        .iter()
        .flat_map(|c| alphabet.binary_search(c))
        .collect();
    let (train, held_out) = tokens.split_at(tokens.len() / 10 * 9);

    // A kernel in linear time: its state has a constant size, however long the model writes.
    let mut kernel = IkanDirect::default();
    (kernel.points, kernel.form) = (16, Form::LinearTime);
    let mut layer = EncoderLayerConfig::default();
    (layer.width, layer.heads, layer.hidden) = (64, 4, 256);
    (layer.attention, layer.norm) = (kernel.into(), NormPlacement::Pre);
    let encoder = EncoderConfig { layers: 2, layer };
    let config = LanguageModelConfig::transformer(alphabet.len(), encoder);
    let task = Task::new(train.to_vec(), 128, 16)?;
    let mut trainer = Trainer::new(&config, &TrainingConfig::default(), task, Seed::new(1))?;
    for epoch in 1..=3 {
        trainer.epoch()?;
        let bits = trainer.assess(held_out)? / std::f64::consts::LN_2;
        println!("epoch {epoch}: {bits:.3} bits a character");
    }
    let sampling = Sampling {
        temperature: 0.8,
        ..Default::default()
    };
    let written = trainer
        .model()
        .generate(&train[..1], &sampling, Seed::new(2))?;
    for token in written.take(500) {
        print!("{}", alphabet[token?]);
    }
    Ok(())
}
