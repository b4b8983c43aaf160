//! `vocabulary`: the words of the training parts of the sentence corpora.

use super::corpora::Corpora;
use super::findings::Findings;
use super::parse;
use crate::error::Fault;
use bochner_datasets::{FOLDS, Protocol, SentenceSet, manifest};
use bochner_text::{Marks, TokenCounts, Vocabulary, VocabularyConfig, clean_str};
use serde::Deserialize;
use std::collections::HashSet;

/// Sentences longer than this are cut by the protocol, not here.
const CUT: usize = 60;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    fold: usize,
    test: String,
    validation: String,
    expected: Expected,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    rows: Vec<usize>,
    labels: Labels,
    train_tokens: usize,
    longest: Vec<usize>,
    without_tokens: Vec<usize>,
    longer_than_60: Vec<usize>,
    distinct_min1: usize,
    distinct_min2: usize,
    size_with_pad_and_unknown: [usize; 2],
    min1: Unknowns,
    min2: Unknowns,
    most_frequent: Vec<(String, u64)>,
    words_sha256: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Labels {
    train: Vec<usize>,
    validation: Vec<usize>,
    test: Vec<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unknowns {
    train: Option<Unknown>,
    validation: Unknown,
    test: Unknown,
}

/// The running words of a part that the vocabulary does not have.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Unknown {
    tokens: usize,
    unknown: usize,
    /// To six places.
    rate: f64,
    distinct: usize,
    distinct_unknown: usize,
}

/// Labels and tokens of the rows of a part.
struct Part {
    labels: Vec<usize>,
    sentences: Vec<Vec<String>>,
}

struct Parts {
    train: Part,
    validation: Part,
    test: Part,
}

pub(super) fn check(bytes: &[u8], corpora: &Corpora) -> Result<Findings, Fault> {
    let name: super::Head = super::read(bytes)?;
    let case: Case = parse(bytes)?;
    let parts = case.parts(&name.name, corpora)?;
    let expected = &case.expected;
    let mut findings = Findings::default();
    rows(&mut findings, &parts, expected)?;
    let counts: TokenCounts = parts.train.sentences.iter().flatten().collect();
    let found = counts.total() as usize;
    findings.equal("train_tokens", &found, &expected.train_tokens)?;
    let stated = &expected.most_frequent;
    let most: Vec<(String, u64)> = counts
        .by_frequency()
        .into_iter()
        .take(stated.len())
        .map(|(word, count)| (word.to_owned(), count))
        .collect();
    findings.equal_lists("most_frequent", &most, stated)?;
    let least = |min_count| {
        let config = VocabularyConfig {
            min_count,
            marks: Marks::None,
            ..Default::default()
        };
        Vocabulary::from_counts(&counts, &config).map_err(Fault::refused)
    };
    let (once, twice) = (least(1)?, least(2)?);
    let found = [once.words().len(), twice.words().len()];
    let stated = [expected.distinct_min1, expected.distinct_min2];
    findings.equal("distinct", &found, &stated)?;
    let sizes = [once.len(), twice.len()];
    let stated = &expected.size_with_pad_and_unknown;
    findings.equal("size_with_pad_and_unknown", &sizes, stated)?;
    let mut words: Vec<&str> = once.words().iter().map(String::as_str).collect();
    words.sort_unstable();
    let digest = manifest::sha256(words.join("\n").as_bytes());
    findings.equal("words_sha256", &digest, &expected.words_sha256)?;
    unknowns(&mut findings, "min1", &once, &parts, &expected.min1)?;
    unknowns(&mut findings, "min2", &twice, &parts, &expected.min2)?;
    Ok(findings)
}

impl Case {
    /// The parts of the set that the case's name holds behind its first hyphen.
    fn parts(&self, name: &str, corpora: &Corpora) -> Result<Parts, Fault> {
        let set = name.split('-').nth(1).unwrap_or_default();
        let set: SentenceSet = set.parse().map_err(Fault::refused)?;
        let (protocol, test, validation) = match set {
            SentenceSet::Trec => (
                Protocol::Fixed,
                "TREC.test.all".to_owned(),
                format!("fold {} of the training file", self.fold),
            ),
            _ => (
                Protocol::P10,
                format!("fold {}", self.fold),
                format!("fold {}", (self.fold + 1) % FOLDS),
            ),
        };
        expect("test", &self.test, test)?;
        expect("validation", &self.validation, validation)?;
        let data = corpora.sentences(set, protocol)?;
        let split = data.splits.get(self.fold).ok_or_else(|| Fault::Entry {
            key: "fold".to_owned(),
            expected: format!("below {}", data.splits.len()),
            got: self.fold.to_string(),
        })?;
        let part = |rows: &[usize]| {
            let rows = || rows.iter().map(|&row| &data.sentences[row]);
            Part {
                labels: rows().map(|row| row.label).collect(),
                sentences: rows().map(|row| clean_str(&row.text)).collect(),
            }
        };
        Ok(Parts {
            train: part(&split.train),
            validation: part(&split.validation),
            test: part(&split.test),
        })
    }
}

fn expect(key: &str, got: &str, expected: String) -> Result<(), Fault> {
    if got == expected {
        return Ok(());
    }
    Err(Fault::Entry {
        key: key.to_owned(),
        expected,
        got: got.to_owned(),
    })
}

fn rows(findings: &mut Findings, parts: &Parts, expected: &Expected) -> Result<(), Fault> {
    let all = [&parts.train, &parts.validation, &parts.test];
    let count = |of: &dyn Fn(&Vec<String>) -> bool| {
        all.map(|part| part.sentences.iter().filter(|tokens| of(tokens)).count())
    };
    findings.equal_lists("rows", &count(&|_| true), &expected.rows)?;
    let empty = count(&|tokens| tokens.is_empty());
    findings.equal_lists("without_tokens", &empty, &expected.without_tokens)?;
    let long = count(&|tokens| tokens.len() > CUT);
    findings.equal_lists("longer_than_60", &long, &expected.longer_than_60)?;
    let longest = all.map(|part| part.sentences.iter().map(Vec::len).max().unwrap_or(0));
    findings.equal_lists("longest", &longest, &expected.longest)?;
    let Labels {
        train,
        validation,
        test,
    } = &expected.labels;
    for (part, stated) in all.into_iter().zip([train, validation, test]) {
        let of = |class| part.labels.iter().filter(|&&label| label == class).count();
        let found: Vec<usize> = (0..stated.len()).map(of).collect();
        findings.equal_lists("labels", &found, stated)?;
        findings.equal(
            "labels in all",
            &part.labels.len(),
            &stated.iter().sum::<usize>(),
        )?;
    }
    Ok(())
}

fn unknowns(
    findings: &mut Findings,
    name: &str,
    vocabulary: &Vocabulary,
    parts: &Parts,
    expected: &Unknowns,
) -> Result<(), Fault> {
    let compared = [
        ("train", &parts.train, expected.train.as_ref()),
        ("validation", &parts.validation, Some(&expected.validation)),
        ("test", &parts.test, Some(&expected.test)),
    ];
    for (part, found, expected) in compared {
        if let Some(expected) = expected {
            let found = unknown(vocabulary, &found.sentences);
            findings.equal(&format!("{name}.{part}"), &found, expected)?;
        }
    }
    Ok(())
}

fn unknown(vocabulary: &Vocabulary, sentences: &[Vec<String>]) -> Unknown {
    let tokens = || sentences.iter().flatten();
    let is_unknown = |token: &&String| vocabulary.number(token) == Vocabulary::UNKNOWN;
    let distinct: HashSet<&String> = tokens().collect();
    let unknown = tokens().filter(is_unknown).count();
    let running = tokens().count();
    Unknown {
        tokens: running,
        unknown,
        rate: (1e6 * unknown as f64 / running as f64).round() / 1e6,
        distinct: distinct.len(),
        distinct_unknown: distinct.into_iter().filter(is_unknown).count(),
    }
}
