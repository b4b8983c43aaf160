//! `bpe` and `bpe_large`: merges and the pieces that they make.

use super::{File, corpus_fault};
use crate::error::Failure;
use bochner_datasets::{DataStore, manifest};
use bochner_text::{Learned, SubwordConfig, Subwords, TokenCounts, lines};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The training text: in the case, or lines of pinned files.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Corpus {
    text: Option<String>,
    #[serde(default)]
    files: Vec<String>,
    first_line: Option<usize>,
    lines: Option<usize>,
    #[serde(rename = "distinct_words")]
    _distinct_words: usize,
    #[serde(rename = "words")]
    _words: u64,
}

impl Corpus {
    /// The lines of the text.
    fn read(&self, store: &DataStore) -> Result<Vec<String>, Failure> {
        let mut all: Vec<String> = self.text.iter().cloned().collect();
        for file in &self.files {
            let stored = store.fetch(manifest::entry(file)?).map_err(corpus_fault)?;
            let lines = lines(file, &stored.bytes)?.into_iter();
            let kept = lines.skip(self.first_line.unwrap_or(1).saturating_sub(1));
            let kept = kept.take(self.lines.unwrap_or(usize::MAX));
            all.extend(kept.map(str::to_owned));
        }
        Ok(all)
    }
}

/// The merges of a text, and its numbers of words.
fn learn(text: &[String], merges: usize) -> Result<(Learned, Value), Failure> {
    let words = TokenCounts::of_words(text.iter().map(String::as_str));
    let config = SubwordConfig {
        merges,
        ..Default::default()
    };
    let counts = json!({ "distinct_words": words.len(), "words": words.total() });
    Ok((Subwords::learn(&words, &config)?, counts))
}

pub(super) fn bpe(file: &File) -> Result<Value, Failure> {
    let text = file.get::<Corpus>("corpus")?.read(file.store)?;
    let (learned, corpus) = learn(&text, file.get("requested_merges")?)?;
    let Learned { subwords, history } = &learned;
    let lines: Vec<&str> = file.get("lines")?;
    let encoded = subwords.encode_all(lines);
    let encoded: Vec<String> = encoded.iter().map(|pieces| pieces.join(" ")).collect();
    let decoded = encoded.iter().map(|line| {
        let pieces: Vec<_> = line.split(' ').collect();
        Subwords::decode(&pieces)
    });
    let pieces = subwords.encode_all(text.iter().map(String::as_str));
    let distinct: BTreeSet<&str> = pieces.iter().flatten().map(String::as_str).collect();
    let listed = distinct.iter().copied().collect::<Vec<_>>().join("\n");
    let expected = json!({
        "merges": subwords.merges(),
        "frequencies": history.iter().map(|merge| merge.frequency).collect::<Vec<_>>(),
        "ties": history.iter().map(|merge| merge.ties).collect::<Vec<_>>(),
        "encoded": encoded,
        "decoded": decoded.collect::<Vec<_>>(),
        "distinct_pieces_of_the_corpus": distinct.len(),
        "pieces_sha256": manifest::sha256(listed.as_bytes()),
        "tokens_of_the_corpus": pieces.iter().map(Vec::len).sum::<usize>(),
    });
    Ok(json!({ "separator": "@@", "corpus": corpus, "expected": expected }))
}

pub(super) fn bpe_large(file: &File) -> Result<Value, Failure> {
    let corpus: Corpus = file.get("corpus")?;
    let (learned, counts) = learn(&corpus.read(file.store)?, file.get("requested_merges")?)?;
    let (merges, history) = (learned.subwords.merges(), &learned.history);
    let frequencies: Vec<u64> = history.iter().map(|merge| merge.frequency).collect();
    let listed = merges
        .iter()
        .map(|(left, right)| format!("{left} {right}\n"));
    let digest = manifest::sha256(listed.collect::<String>().as_bytes());
    let mut expected: Value = file.get("expected")?;
    let last = |name: &str| {
        let shown = expected[name].as_array().map_or(0, Vec::len);
        merges.len().saturating_sub(shown)..
    };
    let (last_merges, last_frequencies) = (last("last_merges"), last("last_frequencies"));
    expected["last_merges"] = json!(merges[last_merges]);
    expected["last_frequencies"] = json!(frequencies[last_frequencies]);
    expected["every_hundredth"] = json!(merges.iter().step_by(100).collect::<Vec<_>>());
    // The tool, which forgets rare pairs for a while, can depart from its rule. Without a difference its merges are
    // those of the rule.
    if expected["first_difference"].is_null() {
        expected["subword_nmt_sha256"] = json!(digest);
        expected["only_in_rule"] = json!(0);
    }
    expected["rule_sha256"] = json!(digest);
    Ok(json!({ "corpus": counts, "expected": expected }))
}
