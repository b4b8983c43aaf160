//! Learns to classify sentences from a TSV of your own, and names the classes of the lines that it reads:
//! `cargo run --release -p bochner-models --example own_tsv -- FILE < lines.txt`.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use bochner_datasets::labelled::{LabelledConfig, parse};
use bochner_models::assessment::{Average, ConfusionMatrix};
use bochner_models::classifier::*;
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig};
use bochner_numerics::Seed;
use bochner_text::{BatchConfig, TokenCounts, Vocabulary, VocabularyConfig, clean_str};
use std::{error::Error, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    bochner_numerics::memory::keep_freed_memory();
    let file = std::env::args().nth(1).ok_or("name a file")?;
    let saved = Path::new("classifier.safetensors");
    let seen = train(&file, 20, saved)?;
    let f1 = seen.average(Average::Macro).f1;
    eprintln!(
        "held out: accuracy {:.3}, macro F1 {f1:.3}",
        seen.accuracy()
    );
    let lines = std::io::stdin().lines().collect::<Result<Vec<_>, _>>()?;
    let sentences: Vec<_> = lines
        .iter()
        .map(|line| clean_str(line.as_bytes()))
        .collect();
    for label in SentenceClassifier::load(saved)?.labels(&sentences)? {
        println!("{label}");
    }
    Ok(())
}

/// Learns from nine tenths of a file whose first line names the columns `label` and `text`, saves what was learnt, and
/// counts what it makes of the last tenth.
pub(crate) fn train(
    file: &str,
    epochs: usize,
    saved: &Path,
) -> Result<ConfusionMatrix, Box<dyn Error>> {
    let read = parse(file, &fs::read(file)?, &LabelledConfig::default())?;
    let split = &read.splits()?[0];
    let sentences: Vec<_> = read
        .sentences
        .iter()
        .map(|row| clean_str(&row.text))
        .collect();
    let counts: TokenCounts = split
        .train
        .iter()
        .flat_map(|&row| &sentences[row])
        .collect();
    let vocabulary = Vocabulary::from_counts(&counts, &VocabularyConfig::default())?;
    let numbers = vocabulary.encode_all(file, &sentences)?;
    let pick = |rows: &[usize]| -> (Vec<_>, Vec<_>) {
        rows.iter()
            .map(|&row| (numbers[row].clone(), read.sentences[row].label))
            .unzip()
    };
    let ((train, classes), (test, wanted)) = (pick(&split.train), pick(&split.test));
    let layer = EncoderLayerConfig {
        width: 32,
        heads: 4,
        hidden: 64,
        ..Default::default()
    };
    let encoder = EncoderConfig::new(1, layer);
    let mut config =
        TextClassifierConfig::transformer(vocabulary.len(), read.classes.len(), 200, encoder);
    config.vocabulary = Some(vocabulary.fingerprint());
    config.class_names = read.classes.clone();
    let task = Task::new(train, classes, BatchConfig::default())?;
    let mut trainer = Trainer::new(&config, &TrainingConfig::default(), task, Seed::new(1))?;
    for _ in 0..epochs {
        trainer.epoch()?;
    }
    trainer.sentence_classifier(vocabulary)?.save(saved)?;
    Ok(ConfusionMatrix::of_rows(
        trainer.predict(&test)?.view(),
        &wanted,
    )?)
}
