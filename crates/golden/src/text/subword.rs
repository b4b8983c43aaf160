//! `bpe` and `bpe_large`: merges and the pieces that they make.

use super::{File, corpus_fault};
use crate::error::{Failure, Fault};
use bochner_datasets::{DataStore, manifest};
use bochner_text::{Learned, Split, SubwordConfig, Subwords, TokenCounts, lines};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashSet};

type Pair = (String, String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    corpus: Corpus,
    requested_merges: usize,
    #[serde(rename = "separator")]
    _separator: String,
    lines: Vec<String>,
    #[serde(rename = "expected")]
    _expected: Value,
    tokenizers: Option<Tokenizers>,
}

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

/// The merges that Hugging Face's `tokenizers` learns from the same text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tokenizers {
    merges: Vec<Pair>,
    #[serde(rename = "first_difference")]
    _first_difference: Option<Value>,
    /// `None` for a line with a character that the text does not have.
    encoded: Vec<Option<String>>,
    #[serde(rename = "lines_encoded_differently")]
    _lines_encoded_differently: usize,
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
    let case: Case = file.parse()?;
    let text = case.corpus.read(file.store)?;
    let (learned, corpus) = learn(&text, case.requested_merges)?;
    let Learned { subwords, history } = &learned;
    let encoded = encoded(subwords, &case.lines);
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
    // The file of the other tool holds everything.
    let read = Subwords::from_tokenizer_json(subwords.to_tokenizer_json()?.as_bytes())?;
    if read != *subwords {
        return Err(Fault::Differs {
            name: "tokenizer.json".to_owned(),
            expected: format!("{subwords:?}"),
            got: format!("{read:?}"),
        }
        .into());
    }
    let mut values = json!({ "separator": "@@", "corpus": corpus, "expected": expected });
    if let Some(others) = &case.tokenizers {
        values["tokenizers"] = tokenizers(&learned, others, &case.lines, &encoded)?;
    }
    Ok(values)
}

fn encoded(subwords: &Subwords, lines: &[String]) -> Vec<String> {
    let pieces = subwords.encode_all(lines.iter().map(String::as_str));
    pieces.iter().map(|pieces| pieces.join(" ")).collect()
}

/// The other tool's merges: where they depart from ours, and what they make in our hands.
fn tokenizers(
    learned: &Learned,
    others: &Tokenizers,
    lines: &[String],
    encoded_here: &[String],
) -> Result<Value, Failure> {
    let (ours, theirs) = (learned.subwords.merges(), &others.merges);
    let places = 0..ours.len().max(theirs.len());
    let differing: Vec<usize> = places
        .filter(|&at| ours.get(at) != theirs.get(at))
        .collect();
    let only_in = |of: &[Pair], other: &[Pair]| {
        let other: HashSet<&Pair> = other.iter().collect();
        of.iter().filter(|merge| !other.contains(merge)).count()
    };
    let difference = differing.first().map(|&at| {
        let chosen = learned.history.get(at);
        json!({
            "merge": at,
            "subword_nmt": ours.get(at),
            "tokenizers": theirs.get(at),
            "frequency": chosen.map(|merge| merge.frequency),
            "pairs_with_this_frequency": chosen.map(|merge| merge.ties),
            "differing_positions": differing.len(),
            "only_in_subword_nmt": only_in(ours, theirs),
            "only_in_tokenizers": only_in(theirs, ours),
        })
    });
    let alphabet = learned.subwords.alphabet();
    let subwords = Subwords::from_merges(Split::WhiteSpace, alphabet.to_vec(), theirs.clone())?;
    let known: BTreeSet<&str> = alphabet.iter().map(String::as_str).collect();
    let found = encoded(&subwords, lines).into_iter().zip(lines);
    let found = found.map(|(found, line)| is_known(line, &known).then_some(found));
    // A line that cannot be encoded there counts, too.
    let differently = others.encoded.iter().zip(encoded_here);
    let differently = differently.filter(|(theirs, ours)| theirs.as_ref() != Some(*ours));
    Ok(json!({
        "first_difference": difference,
        "encoded": found.collect::<Vec<_>>(),
        "lines_encoded_differently": differently.count(),
    }))
}

/// Whether all characters of a line are in the alphabet, those at the end of a word with its mark.
fn is_known(line: &str, alphabet: &BTreeSet<&str>) -> bool {
    let word = |word: &str| {
        let mut left = word.chars().count();
        word.chars().all(|c| {
            left -= 1;
            let mark = if left == 0 { "</w>" } else { "" };
            alphabet.contains(&*format!("{c}{mark}"))
        })
    };
    line.split_whitespace().all(word)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LargeCase {
    corpus: Corpus,
    requested_merges: usize,
    expected: LargeExpected,
}

#[derive(Deserialize)]
struct LargeExpected {
    /// The place where the tool, which forgets rare pairs for a while, departs from its rule.
    first_difference: Option<usize>,
    subword_nmt_sha256: String,
    only_in_rule: usize,
    last_merges: Vec<Pair>,
    last_frequencies: Vec<u64>,
}

pub(super) fn bpe_large(file: &File) -> Result<Value, Failure> {
    let LargeCase {
        corpus,
        requested_merges,
        expected,
    } = file.parse()?;
    let (learned, counts) = learn(&corpus.read(file.store)?, requested_merges)?;
    let (merges, history) = (learned.subwords.merges(), &learned.history);
    let frequencies: Vec<u64> = history.iter().map(|merge| merge.frequency).collect();
    let last = |all: usize, shown: usize| all.saturating_sub(shown)..;
    let listed = merges
        .iter()
        .map(|(left, right)| format!("{left} {right}\n"));
    let digest = manifest::sha256(listed.collect::<String>().as_bytes());
    // Without a difference the tool's merges are those of its rule.
    let (of_tool, only_in_rule) = match expected.first_difference {
        None => (digest.clone(), 0),
        Some(_) => (expected.subword_nmt_sha256, expected.only_in_rule),
    };
    Ok(json!({ "corpus": counts, "expected": {
        "every_hundredth": merges.iter().step_by(100).collect::<Vec<_>>(),
        "last_merges": merges[last(merges.len(), expected.last_merges.len())],
        "last_frequencies": frequencies[last(frequencies.len(), expected.last_frequencies.len())],
        "rule_sha256": digest,
        "subword_nmt_sha256": of_tool,
        "only_in_rule": only_in_rule,
        "first_difference": expected.first_difference,
    } }))
}
