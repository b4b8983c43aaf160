//! `bpe` and `bpe_large`: merges and the pieces that they make.

use super::corpora::Corpora;
use super::findings::Findings;
use super::parse;
use crate::error::Fault;
use bochner_datasets::manifest;
use bochner_text::{Learned, Split, SubwordConfig, Subwords, TokenCounts, lines};
use serde::Deserialize;
use std::collections::{BTreeSet, HashSet};

type Pair = (String, String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    corpus: Corpus,
    requested_merges: usize,
    separator: String,
    lines: Vec<String>,
    expected: Expected,
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
    distinct_words: usize,
    words: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    merges: Vec<Pair>,
    frequencies: Vec<u64>,
    ties: Vec<usize>,
    encoded: Vec<String>,
    decoded: Vec<String>,
    distinct_pieces_of_the_corpus: Option<usize>,
    pieces_sha256: Option<String>,
    tokens_of_the_corpus: Option<usize>,
}

/// What Hugging Face's `tokenizers` learns from the same text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tokenizers {
    merges: Vec<Pair>,
    first_difference: Option<Difference>,
    /// `None` for a line with a character that the text does not have.
    encoded: Vec<Option<String>>,
    lines_encoded_differently: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Difference {
    merge: usize,
    subword_nmt: Pair,
    tokenizers: Pair,
    frequency: u64,
    pairs_with_this_frequency: usize,
    differing_positions: usize,
    only_in_subword_nmt: usize,
    only_in_tokenizers: usize,
}

impl Corpus {
    /// The lines of the text, whose words are counted and compared.
    fn read(&self, corpora: &Corpora) -> Result<Vec<String>, Fault> {
        let mut all: Vec<String> = self.text.iter().cloned().collect();
        for file in &self.files {
            let bytes = corpora.bytes(file)?;
            let lines = lines(file, &bytes).map_err(Fault::refused)?;
            let skipped = self.first_line.unwrap_or(1).saturating_sub(1);
            let kept = lines.into_iter().skip(skipped);
            all.extend(
                kept.take(self.lines.unwrap_or(usize::MAX))
                    .map(str::to_owned),
            );
        }
        Ok(all)
    }

    fn learn(
        &self,
        lines: &[String],
        merges: usize,
        findings: &mut Findings,
    ) -> Result<Learned, Fault> {
        let words = TokenCounts::of_words(lines.iter().map(String::as_str));
        findings.equal("distinct_words", &words.len(), &self.distinct_words)?;
        findings.equal("words", &words.total(), &self.words)?;
        let config = SubwordConfig {
            merges,
            ..Default::default()
        };
        Subwords::learn(&words, &config).map_err(Fault::refused)
    }
}

pub(super) fn check(bytes: &[u8], corpora: &Corpora) -> Result<Findings, Fault> {
    let case: Case = parse(bytes)?;
    let mut findings = Findings::default();
    findings.equal("separator", &"@@", &case.separator.as_str())?;
    let text = case.corpus.read(corpora)?;
    let learned = case
        .corpus
        .learn(&text, case.requested_merges, &mut findings)?;
    let Learned { subwords, history } = &learned;
    findings.equal_lists("merges", subwords.merges(), &case.expected.merges)?;
    let frequencies: Vec<u64> = history.iter().map(|merge| merge.frequency).collect();
    findings.equal_lists("frequencies", &frequencies, &case.expected.frequencies)?;
    let ties: Vec<usize> = history.iter().map(|merge| merge.ties).collect();
    findings.equal_lists("ties", &ties, &case.expected.ties)?;
    let encoded = encoded(subwords, &case.lines);
    findings.equal_lists("encoded", &encoded, &case.expected.encoded)?;
    let decoded = encoded.iter().map(|line| {
        let pieces: Vec<_> = line.split(' ').collect();
        Subwords::decode(&pieces)
    });
    let decoded: Vec<_> = decoded.collect();
    findings.equal_lists("decoded", &decoded, &case.expected.decoded)?;
    pieces(subwords, &text, &case.expected, &mut findings)?;
    if let Some(others) = &case.tokenizers {
        tokenizers(&learned, others, &case, &encoded, &mut findings)?;
    }
    // The file of the other tool holds everything.
    let json = subwords.to_tokenizer_json().map_err(Fault::refused)?;
    let read = Subwords::from_tokenizer_json(json.as_bytes()).map_err(Fault::refused)?;
    findings.equal("tokenizer.json, written and read", &read, subwords)?;
    Ok(findings)
}

fn encoded(subwords: &Subwords, lines: &[String]) -> Vec<String> {
    let pieces = subwords.encode_all(lines.iter().map(String::as_str));
    pieces.iter().map(|pieces| pieces.join(" ")).collect()
}

/// The pieces of the whole training text, where the case counts them.
fn pieces(
    subwords: &Subwords,
    text: &[String],
    expected: &Expected,
    findings: &mut Findings,
) -> Result<(), Fault> {
    let pieces = subwords.encode_all(text.iter().map(String::as_str));
    let distinct: BTreeSet<&str> = pieces.iter().flatten().map(String::as_str).collect();
    if let Some(expected) = &expected.distinct_pieces_of_the_corpus {
        findings.equal("distinct_pieces_of_the_corpus", &distinct.len(), expected)?;
    }
    if let Some(expected) = &expected.pieces_sha256 {
        let distinct: Vec<&str> = distinct.into_iter().collect();
        let found = manifest::sha256(distinct.join("\n").as_bytes());
        findings.equal("pieces_sha256", &found, expected)?;
    }
    if let Some(expected) = &expected.tokens_of_the_corpus {
        let tokens: usize = pieces.iter().map(Vec::len).sum();
        findings.equal("tokens_of_the_corpus", &tokens, expected)?;
    }
    Ok(())
}

/// The other tool's merges: where they depart from ours, and what they make in our hands.
fn tokenizers(
    learned: &Learned,
    others: &Tokenizers,
    case: &Case,
    encoded_here: &[String],
    findings: &mut Findings,
) -> Result<(), Fault> {
    let ours = learned.subwords.merges();
    let theirs = &others.merges;
    let differing: Vec<usize> = (0..ours.len().max(theirs.len()))
        .filter(|&at| ours.get(at) != theirs.get(at))
        .collect();
    let merge = others.first_difference.as_ref().map(|found| found.merge);
    findings.equal(
        "first_difference.merge",
        &differing.first().copied(),
        &merge,
    )?;
    if let Some(expected) = &others.first_difference {
        let at = expected.merge;
        let only_in = |of: &[Pair], other: &[Pair]| {
            let other: HashSet<&Pair> = other.iter().collect();
            of.iter().filter(|merge| !other.contains(merge)).count()
        };
        findings.equal("subword_nmt", &ours.get(at), &Some(&expected.subword_nmt))?;
        findings.equal("tokenizers", &theirs.get(at), &Some(&expected.tokenizers))?;
        let chosen = learned
            .history
            .get(at)
            .map(|merge| (merge.frequency, merge.ties));
        let stated = (expected.frequency, expected.pairs_with_this_frequency);
        findings.equal("frequency and ties", &chosen, &Some(stated))?;
        let counts = [
            differing.len(),
            only_in(ours, theirs),
            only_in(theirs, ours),
        ];
        let stated = [
            expected.differing_positions,
            expected.only_in_subword_nmt,
            expected.only_in_tokenizers,
        ];
        findings.equal("differing merges", &counts, &stated)?;
    }
    let alphabet = learned.subwords.alphabet().to_vec();
    let subwords = Subwords::from_merges(Split::WhiteSpace, alphabet, theirs.clone());
    let subwords = subwords.map_err(Fault::refused)?;
    let found = encoded(&subwords, &case.lines);
    let known: BTreeSet<&str> = learned
        .subwords
        .alphabet()
        .iter()
        .map(String::as_str)
        .collect();
    for (at, (found, expected)) in found.iter().zip(&others.encoded).enumerate() {
        let found = Some(found).filter(|_| is_known(&case.lines[at], &known));
        findings.equal(
            &format!("tokenizers.encoded[{at}]"),
            &found,
            &expected.as_ref(),
        )?;
    }
    // A line that cannot be encoded there counts, too.
    let differently = others.encoded.iter().zip(encoded_here);
    let differently = differently.filter(|(theirs, ours)| theirs.as_ref() != Some(*ours));
    let expected = others.lines_encoded_differently;
    findings.equal("lines_encoded_differently", &differently.count(), &expected)
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
#[serde(deny_unknown_fields)]
struct LargeExpected {
    rule_sha256: String,
    subword_nmt_sha256: String,
    /// Where the tool, which forgets rare pairs for a while, departs from its rule.
    first_difference: Option<usize>,
    only_in_rule: usize,
    last_merges: Vec<Pair>,
    last_frequencies: Vec<u64>,
    every_hundredth: Vec<Pair>,
}

pub(super) fn check_large(bytes: &[u8], corpora: &Corpora) -> Result<Findings, Fault> {
    let case: LargeCase = parse(bytes)?;
    let mut findings = Findings::default();
    let text = case.corpus.read(corpora)?;
    let learned = case
        .corpus
        .learn(&text, case.requested_merges, &mut findings)?;
    let merges = learned.subwords.merges();
    let expected = &case.expected;
    let hundredth: Vec<&Pair> = merges.iter().step_by(100).collect();
    let stated: Vec<&Pair> = expected.every_hundredth.iter().collect();
    findings.equal_lists("every_hundredth", &hundredth, &stated)?;
    let last = merges.len().saturating_sub(expected.last_merges.len());
    findings.equal_lists("last_merges", &merges[last..], &expected.last_merges)?;
    let frequencies: Vec<u64> = learned
        .history
        .iter()
        .map(|merge| merge.frequency)
        .collect();
    let last = frequencies
        .len()
        .saturating_sub(expected.last_frequencies.len());
    let stated = &expected.last_frequencies;
    findings.equal_lists("last_frequencies", &frequencies[last..], stated)?;
    let listed = merges
        .iter()
        .map(|(left, right)| format!("{left} {right}\n"));
    let found = manifest::sha256(listed.collect::<String>().as_bytes());
    findings.equal("rule_sha256", &found, &expected.rule_sha256)?;
    if expected.first_difference.is_none() {
        findings.equal("subword_nmt_sha256", &found, &expected.subword_nmt_sha256)?;
        findings.equal("only_in_rule", &0, &expected.only_in_rule)?;
    }
    Ok(findings)
}
