//! `beam_search`: hypotheses for every width, length penalty and rule of stopping.

use super::corpora::Corpora;
use super::findings::{Findings, SCORE};
use super::parse;
use crate::error::Fault;
use bochner_text::{BeamConfig, Error, Found, Hypothesis, Stop, Tokens, beam_search};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    vocabulary: usize,
    start: usize,
    end: usize,
    max_length: usize,
    log_probs: Vec<Row>,
    expected: Expected,
}

/// The logarithmic probabilities behind two tokens; `None` is minus infinity.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    context: [usize; 2],
    next: Vec<Option<f64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    results: Vec<Searched>,
    /// The best of all hypotheses, for each exponent as it is written.
    exhaustive: BTreeMap<String, Ended>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Searched {
    beam: usize,
    alpha: f64,
    stop: Stop,
    steps: usize,
    hypotheses: Vec<Ended>,
    /// A statement about another rule than ours, for those who have that one.
    #[serde(rename = "same_best_if_beam_shrinks")]
    _same_best_if_beam_shrinks: bool,
    is_optimal: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ended {
    tokens: Vec<usize>,
    log_prob: f64,
    score: f64,
}

pub(super) fn check(bytes: &[u8], _: &Corpora) -> Result<Findings, Fault> {
    let case: Case = parse(bytes)?;
    let model = case.model()?;
    let mut findings = Findings::default();
    for searched in &case.expected.results {
        case.searched(&model, searched, &mut findings)?;
    }
    for (alpha, best) in &case.expected.exhaustive {
        let alpha = number(alpha)?;
        let found = case.search(&model, case.everything(), alpha, Stop::Count)?;
        let name = format!("exhaustive.{alpha}");
        // Several sequences can be the best one, and those who enumerate find another first.
        let first = found.hypotheses.first().ok_or_else(|| none(&name))?;
        let mut equal = found.hypotheses.iter();
        let equal = equal.find(|found| found.score == first.score && found.tokens == best.tokens);
        let found = equal.unwrap_or(first);
        ended(&mut findings, &name, found, best)?;
    }
    Ok(findings)
}

fn number(text: &str) -> Result<f64, Fault> {
    text.parse().map_err(|_| Fault::Entry {
        key: "exhaustive".to_owned(),
        expected: "exponents".to_owned(),
        got: text.to_owned(),
    })
}

fn none(name: &str) -> Fault {
    Fault::NotComputed {
        tensor: name.to_owned(),
    }
}

type Model = HashMap<[usize; 2], Vec<f32>>;

impl Case {
    fn model(&self) -> Result<Model, Fault> {
        let rows = self.log_probs.iter().map(|row| {
            let next = row.next.iter();
            let next: Vec<f32> = next
                .map(|p| p.map_or(f32::NEG_INFINITY, |p| p as f32))
                .collect();
            if next.len() == self.vocabulary {
                return Ok((row.context, next));
            }
            Err(Fault::Shape {
                tensor: format!("log_probs {:?}", row.context),
                expected: format!("[{}]", self.vocabulary),
                got: vec![next.len()],
            })
        });
        rows.collect()
    }

    /// A beam that no hypothesis falls out of.
    fn everything(&self) -> usize {
        let places = u32::try_from(self.max_length).unwrap_or(u32::MAX);
        self.vocabulary.saturating_pow(places).min(100_000)
    }

    fn search(&self, model: &Model, beam: usize, alpha: f64, stop: Stop) -> Result<Found, Fault> {
        let tokens = Tokens {
            vocabulary: self.vocabulary,
            start: self.start,
            end: self.end,
        };
        let config = BeamConfig {
            beam,
            alpha,
            max_length: self.max_length,
            stop,
            ..BeamConfig::default()
        };
        let found = beam_search(&tokens, &config, |live, log_probs: &mut [f32]| {
            let rows = log_probs.chunks_mut(self.vocabulary);
            for (hypothesis, row) in live.iter().zip(rows) {
                let context = match hypothesis.tokens[..] {
                    [.., before, last] => [before, last],
                    _ => [self.start; 2],
                };
                // No case goes where it has no row.
                row.copy_from_slice(&model[&context]);
            }
            Ok::<(), Error>(())
        });
        found.map_err(Fault::refused)
    }

    fn searched(
        &self,
        model: &Model,
        searched: &Searched,
        findings: &mut Findings,
    ) -> Result<(), Fault> {
        let Searched {
            beam, alpha, stop, ..
        } = *searched;
        let name = format!("beam {beam}, alpha {alpha}, stop {stop:?}");
        let found = self.search(model, beam, alpha, stop)?;
        findings.equal(&format!("{name}: steps"), &found.steps, &searched.steps)?;
        let numbers = [found.hypotheses.len(), searched.hypotheses.len()];
        findings.equal(&format!("{name}: hypotheses"), &numbers[0], &numbers[1])?;
        let pairs = found.hypotheses.iter().zip(&searched.hypotheses);
        for (rank, (found, expected)) in pairs.enumerate() {
            ended(findings, &format!("{name}, rank {rank}"), found, expected)?;
        }
        let mut exhaustive = self.expected.exhaustive.iter();
        let best = exhaustive.find(|(key, _)| number(key) == Ok(alpha));
        let best = best.ok_or_else(|| none("exhaustive"))?.1.score;
        let mut found = found.hypotheses.iter();
        let is_optimal = found.any(|found| (found.score - best).abs() <= SCORE);
        findings.equal(
            &format!("{name}: is_optimal"),
            &is_optimal,
            &searched.is_optimal,
        )
    }
}

fn ended(
    findings: &mut Findings,
    name: &str,
    found: &Hypothesis,
    expected: &Ended,
) -> Result<(), Fault> {
    findings.equal(&format!("{name}: tokens"), &found.tokens, &expected.tokens)?;
    findings.equal(
        &format!("{name}: log_prob"),
        &found.log_prob,
        &expected.log_prob,
    )?;
    findings.near(
        &format!("{name}: score"),
        found.score,
        expected.score,
        SCORE,
    );
    Ok(())
}
