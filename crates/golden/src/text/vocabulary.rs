//! `vocabulary`: the words of the training parts of the sentence corpora.

use super::{File, corpus_fault};
use crate::error::{Failure, Fault};
use bochner_datasets::{FOLDS, Protocol, SentenceSet, manifest, sentences};
use bochner_text::{Marks, TokenCounts, Vocabulary, VocabularyConfig, clean_str};
use serde_json::{Value, json};
use std::collections::HashSet;

/// Sentences longer than this are cut by the protocol, not here.
const CUT: usize = 60;

/// Labels and tokens of the rows of a part.
struct Part {
    labels: Vec<usize>,
    sentences: Vec<Vec<String>>,
}

pub(super) fn vocabulary(file: &File) -> Result<Value, Failure> {
    // The set stands behind the first hyphen of the name.
    let name: &str = file.get("name")?;
    let set: SentenceSet = name.split('-').nth(1).unwrap_or_default().parse()?;
    let (fold, expected): (usize, Value) = (file.get("fold")?, file.get("expected")?);
    let (protocol, test, validation) = match set {
        SentenceSet::Trec => (
            Protocol::Fixed,
            "TREC.test.all".to_owned(),
            format!("fold {fold} of the training file"),
        ),
        _ => (
            Protocol::P10,
            format!("fold {fold}"),
            format!("fold {}", (fold + 1) % FOLDS),
        ),
    };
    let data = sentences::load(set, protocol, file.store).map_err(corpus_fault)?;
    let split = data.splits.get(fold).ok_or_else(|| {
        let expected = format!("below {}", data.splits.len());
        Fault::entry("fold", expected, Some(&fold.to_string()))
    })?;
    let [train, held_out, tested] = [&split.train, &split.validation, &split.test].map(|rows| {
        let rows = || rows.iter().map(|&row| &data.sentences[row]);
        Part {
            labels: rows().map(|row| row.label).collect(),
            sentences: rows().map(|row| clean_str(&row.text)).collect(),
        }
    });
    let parts = [&train, &held_out, &tested];
    let count = |of: fn(&Vec<String>) -> bool| {
        parts.map(|part| part.sentences.iter().filter(|tokens| of(tokens)).count())
    };
    let longest = parts.map(|part| part.sentences.iter().map(Vec::len).max().unwrap_or(0));
    let classes = train.labels.iter().max().map_or(0, |label| label + 1);
    let labels = parts.map(|part| {
        let of = |class| part.labels.iter().filter(|&&label| label == class).count();
        (0..classes).map(of).collect::<Vec<_>>()
    });
    let counts: TokenCounts = train.sentences.iter().flatten().collect();
    let most_frequent = counts.by_frequency().into_iter();
    let most_frequent =
        most_frequent.take(expected["most_frequent"].as_array().map_or(0, Vec::len));
    let least = |min_count| {
        let config = VocabularyConfig {
            min_count,
            marks: Marks::None,
            ..Default::default()
        };
        Vocabulary::from_counts(&counts, &config)
    };
    let (once, twice) = (least(1)?, least(2)?);
    let mut words: Vec<&str> = once.words().iter().map(String::as_str).collect();
    words.sort_unstable();
    let unknowns = |vocabulary: &Vocabulary| {
        let [train, validation, test] = parts.map(|part| unknown(vocabulary, &part.sentences));
        json!({ "train": train, "validation": validation, "test": test })
    };
    Ok(
        json!({ "test": test, "validation": validation, "expected": {
        "rows": count(|_| true),
        "labels": { "train": labels[0], "validation": labels[1], "test": labels[2] },
        "train_tokens": counts.total(),
        "longest": longest,
        "without_tokens": count(|tokens| tokens.is_empty()),
        "longer_than_60": count(|tokens| tokens.len() > CUT),
        "distinct_min1": once.words().len(),
        "distinct_min2": twice.words().len(),
        "size_with_pad_and_unknown": [once.len(), twice.len()],
        "min1": unknowns(&once),
        "min2": unknowns(&twice),
        "most_frequent": most_frequent.collect::<Vec<_>>(),
        "words_sha256": manifest::sha256(words.join("\n").as_bytes()),
    } }),
    )
}

/// The running words of a part that the vocabulary does not have; their rate to six places.
fn unknown(vocabulary: &Vocabulary, sentences: &[Vec<String>]) -> Value {
    let tokens = || sentences.iter().flatten();
    let is_unknown = |token: &&String| vocabulary.number(token) == Vocabulary::UNKNOWN;
    let distinct: HashSet<&String> = tokens().collect();
    let unknown = tokens().filter(is_unknown).count();
    let running = tokens().count();
    json!({
        "tokens": running,
        "unknown": unknown,
        "rate": (1e6 * unknown as f64 / running as f64).round() / 1e6,
        "distinct": distinct.len(),
        "distinct_unknown": distinct.into_iter().filter(is_unknown).count(),
    })
}
