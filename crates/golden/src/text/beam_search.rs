//! `beam_search`: hypotheses for every width, length penalty and rule of stopping.

use super::findings::SCORE;
use super::{File, parse};
use crate::error::{Failure, Fault};
use bochner_text::{BeamConfig, Error, Found, Hypothesis, Stop, Tokens, beam_search};
use serde::Deserialize;
use serde_json::{Value, json};
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
struct Expected {
    results: Vec<Asked>,
    /// The best of all hypotheses, for each exponent as it is written.
    exhaustive: BTreeMap<String, Best>,
}

/// The settings of a search, which stand among its results.
#[derive(Deserialize)]
struct Asked {
    beam: usize,
    alpha: f64,
    stop: Value,
    /// A statement about another rule than ours, for those who have that one.
    same_best_if_beam_shrinks: bool,
}

#[derive(Deserialize)]
struct Best {
    tokens: Vec<usize>,
    score: f64,
}

pub(super) fn search(file: &File) -> Result<Value, Failure> {
    let case: Case = file.parse()?;
    let model = case.model()?;
    let mut results = Vec::new();
    for asked in &case.expected.results {
        let (beam, alpha, stop) = (asked.beam, asked.alpha, parse(asked.stop.clone())?);
        let found = case.search(&model, beam, alpha, stop)?;
        let mut exhaustive = case.expected.exhaustive.iter();
        let best = exhaustive.find(|(key, _)| number(key).is_ok_and(|key| key == alpha));
        let best = best.ok_or_else(|| Fault::NotComputed {
            tensor: format!("exhaustive of {alpha}"),
        })?;
        let mut scores = found.hypotheses.iter().map(|found| found.score);
        results.push(json!({
            "beam": beam,
            "alpha": alpha,
            "stop": asked.stop,
            "steps": found.steps,
            "hypotheses": found.hypotheses.iter().map(ended).collect::<Vec<_>>(),
            "is_optimal": scores.any(|score| (score - best.1.score).abs() <= SCORE),
            "same_best_if_beam_shrinks": asked.same_best_if_beam_shrinks,
        }));
    }
    let mut exhaustive = BTreeMap::new();
    for (alpha, best) in &case.expected.exhaustive {
        let found = case.search(&model, case.everything(), number(alpha)?, Stop::Count)?;
        // Several sequences can be the best one, and those who enumerate find another first.
        let first = found.hypotheses.first();
        let mut equal = found.hypotheses.iter();
        let equal = equal.find(|one| {
            one.tokens == best.tokens && first.is_some_and(|first| first.score == one.score)
        });
        exhaustive.insert(alpha, equal.or(first).map(ended));
    }
    Ok(json!({ "expected": { "results": results, "exhaustive": exhaustive } }))
}

fn number(text: &str) -> Result<f64, Fault> {
    text.parse().map_err(|_| Fault::Entry {
        key: "exhaustive".to_owned(),
        expected: "exponents".to_owned(),
        got: text.to_owned(),
    })
}

fn ended(found: &Hypothesis) -> Value {
    json!({ "tokens": found.tokens, "log_prob": found.log_prob, "score": found.score })
}

type Model = HashMap<[usize; 2], Vec<f32>>;

impl Case {
    fn model(&self) -> Result<Model, Fault> {
        let rows = self.log_probs.iter().map(|row| {
            let next = row.next.iter();
            let next = next.map(|p| p.map_or(f32::NEG_INFINITY, |p| p as f32));
            let next: Vec<f32> = next.collect();
            if next.len() == self.vocabulary {
                return Ok((row.context, next));
            }
            let (name, expected) = (format!("log_probs {:?}", row.context), self.vocabulary);
            Err(Fault::shape(&name, format!("[{expected}]"), &[next.len()]))
        });
        rows.collect()
    }

    /// A beam that no hypothesis falls out of.
    fn everything(&self) -> usize {
        let places = u32::try_from(self.max_length).unwrap_or(u32::MAX);
        self.vocabulary.saturating_pow(places).min(100_000)
    }

    fn search(&self, model: &Model, beam: usize, alpha: f64, stop: Stop) -> Result<Found, Error> {
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
        beam_search(&tokens, &config, |live, log_probs: &mut [f32]| {
            let rows = log_probs.chunks_mut(self.vocabulary);
            for (hypothesis, row) in live.iter().zip(rows) {
                let context = match hypothesis.tokens[..] {
                    [.., before, last] => [before, last],
                    _ => [self.start; 2],
                };
                // No case goes where it has no row.
                row.copy_from_slice(&model[&context]);
            }
            Ok(())
        })
    }
}
