//! `bleu` and `tokenize_13a`.

use super::corpora::Corpora;
use super::findings::{Findings, SCORE};
use super::parse;
use crate::error::Fault;
use bochner_text::bleu::lowercase;
use bochner_text::{
    BleuConfig, BleuScore, BleuStatistics, Case as LetterCase, Orders, Smoothing, Tokenisation,
    corpus_bleu, line_statistics, sentence_bleu, tokenize_13a,
};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    settings: Settings,
    hypotheses: Vec<String>,
    references: Vec<Vec<String>>,
    expected: Expected,
}

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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    score: f64,
    precisions: Vec<f64>,
    bp: f64,
    sys_len: u64,
    ref_len: u64,
    counts: Vec<u64>,
    totals: Vec<u64>,
    signature: String,
    sentence_scores: Option<Vec<f64>>,
    sentence_signature: Option<String>,
    sentence_statistics: Option<Vec<Vec<u64>>>,
}

impl Settings {
    fn config(&self) -> Result<BleuConfig, Fault> {
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
                return Err(Fault::Entry {
                    key: "smooth_method".to_owned(),
                    expected: "exp or none, or floor or add-k with a value".to_owned(),
                    got: format!("{} with {:?}", self.smooth_method, self.smooth_value),
                });
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

pub(super) fn check(bytes: &[u8], _: &Corpora) -> Result<Findings, Fault> {
    let case: Case = parse(bytes)?;
    let config = case.settings.config()?;
    let bleu = corpus_bleu(&case.hypotheses, &case.references, &config);
    let mut findings = Findings::default();
    corpus(
        &mut findings,
        &bleu.map_err(Fault::refused)?,
        &case.expected,
    )?;
    let signature = config.signature(case.references.len());
    findings.equal("signature", &signature, &case.expected.signature)?;
    sentences(&mut findings, &case, config)?;
    Ok(findings)
}

fn corpus(findings: &mut Findings, got: &BleuScore, expected: &Expected) -> Result<(), Fault> {
    let BleuStatistics {
        hypothesis_length,
        reference_length,
        matches,
        totals,
    } = &got.statistics;
    findings.equal("sys_len", hypothesis_length, &expected.sys_len)?;
    findings.equal("ref_len", reference_length, &expected.ref_len)?;
    findings.equal_lists("counts", matches, &expected.counts)?;
    findings.equal_lists("totals", totals, &expected.totals)?;
    findings.near("score", got.score, expected.score, SCORE);
    findings.near("bp", got.brevity_penalty, expected.bp, SCORE);
    findings.near_lists("precisions", &got.precisions, &expected.precisions, SCORE)
}

/// Each line alone, always with the orders that it is long enough for.
fn sentences(findings: &mut Findings, case: &Case, config: BleuConfig) -> Result<(), Fault> {
    let config = BleuConfig {
        orders: Orders::Effective,
        ..config
    };
    let of_line = |at: usize| case.references.iter().map(move |stream| &stream[at]);
    if let Some(expected) = &case.expected.sentence_scores {
        let lines = case.hypotheses.iter().enumerate();
        let scores = lines.map(|(at, hypothesis)| {
            let references: Vec<_> = of_line(at).collect();
            let bleu = sentence_bleu(hypothesis, &references, &config);
            Ok(bleu.map_err(Fault::refused)?.score)
        });
        let scores: Vec<f64> = scores.collect::<Result<_, Fault>>()?;
        findings.near_lists("sentence_scores", &scores, expected, SCORE)?;
    }
    if let Some(expected) = &case.expected.sentence_signature {
        let signature = config.signature(case.references.len());
        findings.equal("sentence_signature", &signature, expected)?;
    }
    if let Some(expected) = &case.expected.sentence_statistics {
        let lines = line_statistics(&case.hypotheses, &case.references, &config);
        let lines = lines.map_err(Fault::refused)?;
        let rows: Vec<Vec<u64>> = lines.iter().map(row).collect();
        findings.equal_lists("sentence_statistics", &rows, expected)?;
    }
    Ok(())
}

/// The statistics of a line as sacrebleu lists them: lengths, matches, totals.
fn row(line: &BleuStatistics) -> Vec<u64> {
    let lengths = [line.hypothesis_length, line.reference_length];
    [&lengths[..], &line.matches, &line.totals].concat()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokensCase {
    lines: Vec<String>,
    expected: ExpectedTokens,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedTokens {
    tokens: Vec<Vec<String>>,
    lowercase_tokens: Vec<Vec<String>>,
}

pub(super) fn check_tokens(bytes: &[u8], _: &Corpora) -> Result<Findings, Fault> {
    let case: TokensCase = parse(bytes)?;
    let lines = || case.lines.iter();
    let tokens: Vec<_> = lines().map(|line| tokenize_13a(line)).collect();
    let lower: Vec<_> = lines().map(|line| tokenize_13a(&lowercase(line))).collect();
    let mut findings = Findings::default();
    findings.equal_lists("tokens", &tokens, &case.expected.tokens)?;
    let expected = &case.expected.lowercase_tokens;
    findings.equal_lists("lowercase_tokens", &lower, expected)?;
    Ok(findings)
}
