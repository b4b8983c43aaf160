//! Learns to classify sentences from a TSV of your own, and names the classes of the lines that it reads:
//! `cargo run --release -p bochner-models --example own_tsv -- FILE < lines.txt`.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use bochner_datasets::labelled::{LabelledConfig, parse};
use bochner_models::assessment::{Average, ConfusionMatrix};
use bochner_models::classifier::*;
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig};
use bochner_numerics::Seed;
use bochner_text::{BatchConfig, Vocabulary, VocabularyConfig, clean_str};
use std::{error::Error, fs, path::Path};

/// The number of times that the training goes through the file.
const EPOCHS: usize = 40;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("name a file")?;
    let saved = Path::new("classifier.safetensors");
    let seen = train(&file, saved)?;
    let (accuracy, f1) = (seen.accuracy(), seen.average(Average::Macro).f1);
    eprintln!("held out: accuracy {accuracy:.3}, macro F1 {f1:.3}");
    let lines = std::io::stdin().lines().collect::<Result<Vec<_>, _>>()?;
    let sentences: Vec<_> = lines.iter().map(clean_str).collect();
    for label in SentenceClassifier::load(saved)?.labels(&sentences)? {
        println!("{label}");
    }
    Ok(())
}

/// Learns from nine tenths of a file whose first line names the columns `label` and `text`, saves what was learnt, and
/// counts what it makes of the last tenth.
pub(crate) fn train(file: &str, saved: &Path) -> Result<ConfusionMatrix, Box<dyn Error>> {
    let read = parse(file, &fs::read(file)?, &LabelledConfig::default())?;
    let split = &read.splits()?[0];
    let [(sentences, labels), held_out] = [&split.train, &split.test].map(|rows| read.words(rows));
    let words = sentences.iter().flatten().collect();
    let vocabulary = Vocabulary::from_counts(&words, &VocabularyConfig::default())?;
    let numbers = vocabulary.encode_all(file, &sentences)?;
    let task = Task::new(numbers, labels, BatchConfig::default())?;
    let mut layer = EncoderLayerConfig::default();
    (layer.width, layer.heads, layer.hidden) = (32, 4, 64);
    let encoder = EncoderConfig::new(1, layer);
    let config = TextClassifierConfig::of_text(&vocabulary, &read.classes, 200, encoder);
    let mut trainer = Trainer::new(&config, &TrainingConfig::default(), task, Seed::new(1))?;
    for _ in 0..EPOCHS {
        trainer.epoch()?;
    }
    let classifier = trainer.sentence_classifier(vocabulary)?;
    classifier.save(saved)?;
    Ok(classifier.confusion(&held_out.0, &held_out.1)?)
}
