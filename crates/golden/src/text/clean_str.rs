//! `clean_str`: cleaned sentences.

use super::corpora::Corpora;
use super::findings::Findings;
use super::parse;
use crate::error::Fault;
use bochner_text::clean_str;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    lines: Vec<Line>,
    expected: Expected,
}

/// A line of a corpus: where it is from is for readers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "the bytes are in the case")]
struct Line {
    file: Option<String>,
    line: usize,
    label: Option<usize>,
    hex: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    tokens: Vec<Vec<String>>,
}

pub(super) fn check(bytes: &[u8], _: &Corpora) -> Result<Findings, Fault> {
    let case: Case = parse(bytes)?;
    let texts = case.lines.iter().map(|line| from_hex(&line.hex));
    let tokens = texts.map(|text| Ok(clean_str(text?)));
    let tokens: Vec<_> = tokens.collect::<Result<_, Fault>>()?;
    let mut findings = Findings::default();
    findings.equal_lists("tokens", &tokens, &case.expected.tokens)?;
    Ok(findings)
}

fn from_hex(digits: &str) -> Result<Vec<u8>, Fault> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair)
            .ok()
            .filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    };
    pairs
        .map(|pair| {
            byte(pair).ok_or_else(|| Fault::Entry {
                key: "hex".to_owned(),
                expected: "pairs of hexadecimal digits".to_owned(),
                got: digits.to_owned(),
            })
        })
        .collect()
}
