//! Learns to translate from two files of your own, line by line, and translates the lines that it reads:
//!
//! ```sh
//! cargo run --release -p bochner-models --example translate -- train.de train.en 20 < test.de
//! ```
//!
//! The translator is saved after every epoch, and stands in one file, `translator.safetensors`, with its subwords.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use bochner_attention::Softmax;
use bochner_datasets::translation::{Blank, parse};
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_models::translator::*;
use bochner_numerics::Seed;
use bochner_text::{BatchConfig, Marks, SubwordConfig, Subwords, TokenCounts};
use std::{error::Error, fs, num::NonZeroUsize, path::Path};

/// The positions of the model; longer pairs are left out.
const LONGEST: usize = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    let [source, target, epochs] = arguments.try_into().map_err(|_| "SOURCE TARGET EPOCHS")?;
    let saved = Path::new("translator.safetensors");
    let epochs = epochs.parse::<NonZeroUsize>()?.get();
    train([&source, &target], epochs, saved)?;
    let translator = TextTranslator::load(saved)?;
    // All lines at once, since those of similar length take their steps together.
    let lines = std::io::stdin().lines().collect::<Result<Vec<_>, _>>()?;
    for translated in translator.translate_all(lines.iter().map(String::as_str))? {
        println!("{}", translated.unwrap_or_else(|e| format!("({e})")));
    }
    Ok(())
}

/// Learns from two files of lines, and saves what was learnt.
pub(crate) fn train(files: [&str; 2], epochs: usize, saved: &Path) -> Result<(), Box<dyn Error>> {
    let sides = [&*fs::read(files[0])?, &fs::read(files[1])?];
    let text = parse(files, sides, Blank::Refuse)?;
    let words = TokenCounts::of_words(text.source.iter().chain(&text.target).map(String::as_str));
    let subwords = Subwords::learn(&words, &SubwordConfig::default())?.subwords;
    let vocabulary = subwords.vocabulary(Marks::StartAndEnd)?;
    let mut pairs = Pair::of_lines([&text.source, &text.target], &subwords, &vocabulary)?;
    let all = pairs.len();
    pairs.retain(|pair| pair.source.len().max(pair.target.len() + 1) <= LONGEST);
    eprintln!(
        "{} of {all} pairs are left out: a side has over {LONGEST} tokens",
        all - pairs.len()
    );
    let task = Task::new(pairs, BatchConfig::default())?.with_label_smoothing(0.1)?;
    let layer = EncoderLayerConfig {
        width: 128,
        heads: 4,
        hidden: 256,
        attention: Softmax::default().into(),
        dropout: 0.1,
        norm: NormPlacement::Pre,
        ..Default::default()
    };
    let (encoder, of_decoder) = (EncoderConfig::new(2, layer), Softmax::default());
    let config = TranslatorConfig::transformer(&vocabulary, LONGEST, encoder, of_decoder.into())?;
    let mut trainer = Trainer::new(&config, &TrainingConfig::default(), task, Seed::new(1))?;
    for epoch in 1..=epochs {
        eprintln!("epoch {epoch}: {:.3}", trainer.epoch()?.error);
        trainer.text_translator(subwords.clone())?.save(saved)?;
    }
    Ok(())
}
