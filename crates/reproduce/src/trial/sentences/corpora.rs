//! Corpora of sentences: those of files, and generated ones for scale `smoke`.

use crate::Error;
use bochner_datasets::sentences::{Sentence, parse};
use bochner_datasets::{
    DataStore, FOLD_SEED, Protocol, SentenceData, SentenceSet, Split, SplitMix64,
};
use bochner_numerics::Seed;
use bochner_report::suite::Set;
use rand::Rng;

/// The sentences of a set from its files; those of a set that has none are generated.
pub(crate) fn load(
    set: &Set,
    protocol: Protocol,
    files: &DataStore,
) -> Result<SentenceData, Error> {
    let data = match set.name.parse::<SentenceSet>() {
        Ok(name) => bochner_datasets::sentences::load(name, protocol, files),
        Err(_) => SentenceData::of_files(SentenceSet::Cr, protocol, vec![generated(set.size)]),
    };
    Ok(data?)
}

/// Sentences of two classes in the form of the corpora's files: most words are common to both, some are more frequent
/// in one.
pub(crate) fn generated(rows: usize) -> Vec<Sentence> {
    let mut stream = Seed::new(2).stream("sentences");
    let mut file = String::new();
    for row in 0..rows {
        let label = row % 2;
        file.push_str(&label.to_string());
        for _ in 0..stream.gen_range(3..24) {
            let word = match stream.gen_range(0..10) {
                0..=1 => format!("sign{}of{label}", stream.gen_range(0..8)),
                _ => format!("word{}", stream.gen_range(0..200)),
            };
            file.push(' ');
            file.push_str(&word);
        }
        file.push_str(" .\n");
    }
    parse("generated sentences", file.as_bytes(), 2).expect("lines of the form that is read")
}

/// The rows with the smallest keys of the fold rule, by rank: every tenth for test, the next for validation.
pub(crate) fn smallest_keys(data: SentenceData, rows: usize) -> SentenceData {
    let keys = SplitMix64::new(FOLD_SEED).take(data.sentences.len());
    let mut order: Vec<(u64, usize)> = keys.zip(0..).collect();
    order.sort_unstable();
    order.truncate(rows);
    let part = |keep: &dyn Fn(usize) -> bool| {
        let ranked = order.iter().enumerate();
        let mut rows: Vec<usize> = ranked
            .filter(|(rank, _)| keep(rank % 10))
            .map(|(_, &(_, row))| row)
            .collect();
        rows.sort_unstable();
        rows
    };
    let split = Split {
        train: part(&|rank| rank > 1),
        validation: part(&|rank| rank == 1),
        test: part(&|rank| rank == 0),
    };
    SentenceData {
        splits: vec![split],
        ..data
    }
}
