//! A classifier's data from a TSV of one's own: `cargo run -p bochner-datasets --example own_tsv FILE`.

#![allow(clippy::print_stdout)]

use bochner_datasets::labelled::{LabelledConfig, parse};
use bochner_text::{TokenCounts, Vocabulary, VocabularyConfig, clean_str};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("name a file")?;
    // Its first line names the columns: here there are `label` and `text`, and maybe others.
    let read = parse(&file, &std::fs::read(&file)?, &LabelledConfig::default())?;
    let rows = read.sentences.iter();
    let sentences: Vec<_> = rows.map(|row| clean_str(&row.text)).collect();
    let split = &read.splits()?[0];
    let train = split.train.iter().flat_map(|&row| &sentences[row]);
    let counts: TokenCounts = train.collect();
    let vocabulary = Vocabulary::from_counts(&counts, &VocabularyConfig::default())?;
    let numbers = vocabulary.encode_all(&file, &sentences)?;
    println!("classes {:?}, {} words", read.classes, vocabulary.len());
    for &row in &split.test {
        println!("{} {:?}", read.sentences[row].label, numbers[row]);
    }
    Ok(())
}
