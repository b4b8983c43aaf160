//! `bleu`, `tokenize_13a` and `clean_str`: scores, tokens and cleaned sentences.

use super::File;
use crate::error::{Failure, Fault};
use bochner_text::bleu::lowercase;
use bochner_text::{
    BleuConfig, BleuStatistics, Case as LetterCase, Orders, Smoothing, Tokenisation, clean_str,
    corpus_bleu, line_statistics, sentence_bleu, tokenize_13a,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// The settings by sacrebleu's names.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    tokenize: Tokenisation,
    lowercase: bool,
    smooth_method: String,
    smooth_value: Option<f64>,
    effective_order: bool,
    max_ngram_order: usize,
}

impl Settings {
    fn config(self) -> Result<BleuConfig, Fault> {
        let smoothing = match (&*self.smooth_method, self.smooth_value) {
            ("exp", None) => Smoothing::Exp,
            ("none", None) => Smoothing::None,
            ("floor", value) => Smoothing::Floor {
                value: value.unwrap_or(0.1),
            },
            ("add-k", value) => Smoothing::AddK {
                value: value.unwrap_or(1.0),
            },
            _ => {
                let got = format!("{} with {:?}", self.smooth_method, self.smooth_value);
                let expected = "exp or none, or floor or add-k with a value";
                return Err(Fault::entry("smooth_method", expected, Some(&got)));
            }
        };
        Ok(BleuConfig {
            tokenisation: self.tokenize,
            case: match self.lowercase {
                true => LetterCase::Lower,
                false => LetterCase::Mixed,
            },
            smoothing,
            orders: match self.effective_order {
                true => Orders::Effective,
                false => Orders::All,
            },
            max_order: self.max_ngram_order,
        })
    }
}

pub(super) fn bleu(file: &File) -> Result<Value, Failure> {
    let hypotheses: Vec<&str> = file.get("hypotheses")?;
    let references: Vec<Vec<&str>> = file.get("references")?;
    let config = file.get::<Settings>("settings")?.config()?;
    let found = corpus_bleu(&hypotheses, &references, &config)?;
    let mut values = json!({
        "score": found.score,
        "precisions": found.precisions,
        "bp": found.brevity_penalty,
        "sys_len": found.statistics.hypothesis_length,
        "ref_len": found.statistics.reference_length,
        "counts": found.statistics.matches,
        "totals": found.statistics.totals,
        "signature": config.signature(references.len()),
    });
    // Each line alone, always with the orders that it is long enough for.
    let config = BleuConfig {
        orders: Orders::Effective,
        ..config
    };
    if file
        .get::<Value>("expected")?
        .get("sentence_scores")
        .is_some()
    {
        let lines = hypotheses.iter().enumerate().map(|(at, hypothesis)| {
            let references: Vec<_> = references.iter().map(|stream| &stream[at]).collect();
            Ok(sentence_bleu(hypothesis, &references, &config)?.score)
        });
        values["sentence_scores"] = json!(lines.collect::<Result<Vec<f64>, Failure>>()?);
        values["sentence_signature"] = json!(config.signature(references.len()));
        let lines = line_statistics(&hypotheses, &references, &config)?;
        values["sentence_statistics"] = json!(lines.iter().map(row).collect::<Vec<_>>());
    }
    Ok(json!({ "expected": values }))
}

/// The statistics of a line as sacrebleu lists them: lengths, matches, totals.
fn row(line: &BleuStatistics) -> Vec<u64> {
    let lengths = [line.hypothesis_length, line.reference_length];
    [&lengths[..], &line.matches, &line.totals].concat()
}

pub(super) fn tokens(file: &File) -> Result<Value, Failure> {
    let lines: Vec<&str> = file.get("lines")?;
    let tokens: Vec<_> = lines.iter().map(|line| tokenize_13a(line)).collect();
    let lower = lines.iter().map(|line| tokenize_13a(&lowercase(line)));
    let lower: Vec<_> = lower.collect();
    Ok(json!({ "expected": { "tokens": tokens, "lowercase_tokens": lower } }))
}

pub(super) fn clean(file: &File) -> Result<Value, Failure> {
    // The place of a line in its corpus is for readers.
    let lines: Vec<Value> = file.get("lines")?;
    let texts = lines
        .iter()
        .map(|line| from_hex(line["hex"].as_str().unwrap_or("none")));
    let tokens = texts.map(|text| Ok(clean_str(text?)));
    let tokens = tokens.collect::<Result<Vec<_>, Fault>>()?;
    Ok(json!({ "expected": { "tokens": tokens } }))
}

fn from_hex(digits: &str) -> Result<Vec<u8>, Fault> {
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair)
            .ok()
            .filter(|pair| pair.len() == 2);
        u8::from_str_radix(pair?, 16).ok()
    };
    let bytes = digits.as_bytes().chunks(2).map(byte).collect::<Option<_>>();
    bytes.ok_or_else(|| Fault::entry("hex", "pairs of hexadecimal digits", Some(digits)))
}
