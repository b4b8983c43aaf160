//! `bootstrap`: intervals and p-values of paired resampling.

use super::corpora::Corpora;
use super::findings::{Findings, SCORE};
use super::parse;
use crate::error::Fault;
use bochner_text::bleu::Pcg64;
use bochner_text::{BleuConfig, BleuStatistics, BootstrapConfig, Interval, paired_bootstrap};
use serde::Deserialize;
use std::collections::BTreeMap;

/// sacrebleu divides in single precision.
const SINGLE: f64 = 1e-4;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    seed: u64,
    samples: usize,
    baseline: String,
    pcg64: State,
    first_indices: Vec<u32>,
    last_indices: Vec<u32>,
    sum_of_indices: u64,
    /// For each system and line: two lengths, four matches, four totals.
    statistics: BTreeMap<String, Vec<[u64; 10]>>,
    expected: BTreeMap<String, Expected>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    state: String,
    increment: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    score: f64,
    mean: f64,
    low: f64,
    high: f64,
    half_width: f64,
    p_value: Option<f64>,
    sacrebleu_mean: f64,
    sacrebleu_half_width: f64,
    sacrebleu_p_value: Option<f64>,
    other_seeds: OtherSeeds,
}

/// Where the results lie with other draws.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OtherSeeds {
    mean: [f64; 2],
    low: [f64; 2],
    high: [f64; 2],
    p_value: Option<[f64; 2]>,
}

pub(super) fn check(bytes: &[u8], _: &Corpora) -> Result<Findings, Fault> {
    let case: Case = parse(bytes)?;
    let mut findings = Findings::default();
    draws(&mut findings, &case)?;
    let lines = |name: &String| {
        let lines = case.statistics.get(name).ok_or_else(|| Fault::Entry {
            key: "statistics".to_owned(),
            expected: format!("to hold the system {name}"),
            got: format!("{:?}", case.statistics.keys()),
        })?;
        Ok(lines.iter().map(statistics).collect::<Vec<_>>())
    };
    let (baseline, others): (Vec<_>, Vec<_>) = case
        .expected
        .iter()
        .partition(|(name, _)| **name == case.baseline);
    let systems: Vec<_> = others
        .iter()
        .map(|(name, _)| lines(name))
        .collect::<Result<_, _>>()?;
    let config = BootstrapConfig {
        samples: case.samples,
        seed: case.seed,
    };
    let bleu = BleuConfig::default();
    let found = paired_bootstrap(&lines(&case.baseline)?, &systems, &bleu, &config);
    let found = found.map_err(Fault::refused)?;
    findings.equal("the number of baselines", &baseline.len(), &1)?;
    for (name, expected) in baseline {
        interval(&mut findings, name, &found.baseline, expected)?;
    }
    for ((name, expected), system) in others.into_iter().zip(&found.systems) {
        interval(&mut findings, name, &system.interval, expected)?;
        p_value(&mut findings, name, system.p_value, expected)?;
    }
    Ok(findings)
}

/// The generator: its state, and the lines that it draws.
fn draws(findings: &mut Findings, case: &Case) -> Result<(), Fault> {
    let mut rng = Pcg64::new(case.seed);
    let (state, increment) = rng.state();
    findings.equal("pcg64.state", &state.to_string(), &case.pcg64.state)?;
    findings.equal(
        "pcg64.increment",
        &increment.to_string(),
        &case.pcg64.increment,
    )?;
    let lines = case.statistics.values().next().map_or(0, Vec::len);
    let drawn: Vec<u32> = (0..lines * case.samples)
        .map(|_| rng.below(lines as u32))
        .collect();
    let sum: u64 = drawn.iter().copied().map(u64::from).sum();
    findings.equal("sum_of_indices", &sum, &case.sum_of_indices)?;
    let (first, last) = (case.first_indices.len(), case.last_indices.len());
    let first = &drawn[..first.min(drawn.len())];
    findings.equal_lists("first_indices", first, &case.first_indices)?;
    let last = &drawn[drawn.len().saturating_sub(last)..];
    findings.equal_lists("last_indices", last, &case.last_indices)
}

fn statistics(row: &[u64; 10]) -> BleuStatistics {
    BleuStatistics {
        hypothesis_length: row[0],
        reference_length: row[1],
        matches: row[2..6].to_vec(),
        totals: row[6..].to_vec(),
    }
}

fn interval(
    findings: &mut Findings,
    name: &str,
    got: &Interval,
    expected: &Expected,
) -> Result<(), Fault> {
    let half = got.half_width();
    let mut near = |what: &str, got: f64, expected: f64, bound: f64| {
        findings.near(&format!("{name}.{what}"), got, expected, bound);
    };
    near("score", got.score, expected.score, SCORE);
    near("mean", got.mean, expected.mean, SCORE);
    near("low", got.low, expected.low, SCORE);
    near("high", got.high, expected.high, SCORE);
    near("half_width", half, expected.half_width, SCORE);
    near("sacrebleu_mean", got.mean, expected.sacrebleu_mean, SINGLE);
    near(
        "sacrebleu_half_width",
        half,
        expected.sacrebleu_half_width,
        SINGLE,
    );
    let others = &expected.other_seeds;
    for (what, got, range) in [
        ("mean", got.mean, others.mean),
        ("low", got.low, others.low),
        ("high", got.high, others.high),
    ] {
        within(findings, &format!("{name}.other_seeds.{what}"), got, range)?;
    }
    Ok(())
}

fn p_value(
    findings: &mut Findings,
    name: &str,
    got: f64,
    expected: &Expected,
) -> Result<(), Fault> {
    let missing = |what: &str| Fault::MissingEntry {
        key: format!("{name}.{what}"),
        expected: "a number for all but the baseline".to_owned(),
    };
    let value = expected.p_value.ok_or_else(|| missing("p_value"))?;
    findings.near(&format!("{name}.p_value"), got, value, SCORE);
    let value = expected.sacrebleu_p_value;
    let value = value.ok_or_else(|| missing("sacrebleu_p_value"))?;
    findings.near(&format!("{name}.sacrebleu_p_value"), got, value, SINGLE);
    let range = expected.other_seeds.p_value;
    let range = range.ok_or_else(|| missing("other_seeds.p_value"))?;
    within(findings, &format!("{name}.other_seeds.p_value"), got, range)
}

fn within(findings: &mut Findings, name: &str, got: f64, range: [f64; 2]) -> Result<(), Fault> {
    let inside = range[0] - SCORE <= got && got <= range[1] + SCORE;
    let what = format!("{name}: whether {got} lies within {range:?}");
    findings.equal(&what, &inside, &true)
}
