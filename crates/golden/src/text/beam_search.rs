//! `beam_search`: hypotheses for every width, length penalty and rule of stopping.

use super::File;
use super::findings::SCORE;
use crate::error::{Failure, Fault};
use bochner_text::{BeamConfig, Found, Hypothesis, Stop, Tokens, beam_search};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The logarithmic probabilities behind two tokens; `None` is minus infinity.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    context: [usize; 2],
    next: Vec<Option<f64>>,
}

pub(super) fn search(file: &File) -> Result<Value, Failure> {
    let model = Model::read(file)?;
    // The settings of a search stand among its results.
    let mut expected: Value = file.get("expected")?;
    let exhaustive = expected["exhaustive"].as_object_mut().into_iter().flatten();
    for (alpha, best) in exhaustive {
        let found = model.search(model.everything(), alpha.parse()?, Stop::Count)?;
        // Several sequences can be the best one, and those who enumerate find another first.
        let first = found.hypotheses.first();
        let mut equal = found.hypotheses.iter();
        let equal = equal.find(|one| {
            json!(one.tokens) == best["tokens"]
                && first.is_some_and(|first| first.score == one.score)
        });
        *best = json!(equal.or(first).map(ended));
    }
    let exhaustive = expected["exhaustive"].clone();
    for result in expected["results"].as_array_mut().into_iter().flatten() {
        let alpha = f64::deserialize(&result["alpha"])?;
        let (beam, stop) = (
            usize::deserialize(&result["beam"])?,
            Stop::deserialize(&result["stop"])?,
        );
        let found = model.search(beam, alpha, stop)?;
        let best = exhaustive[format!("{alpha:?}")]["score"].as_f64();
        let is_best = |score: f64| best.is_some_and(|best| (score - best).abs() <= SCORE);
        result["steps"] = json!(found.steps);
        result["hypotheses"] = found.hypotheses.iter().map(ended).collect();
        result["is_optimal"] = json!(found.hypotheses.iter().any(|found| is_best(found.score)));
    }
    Ok(json!({ "expected": expected }))
}

fn ended(found: &Hypothesis) -> Value {
    json!({ "tokens": found.tokens, "log_prob": found.log_prob, "score": found.score })
}

/// The model of a case: the logarithmic probabilities of the next token behind each two.
struct Model {
    tokens: Tokens,
    max_length: usize,
    rows: HashMap<[usize; 2], Vec<f32>>,
}

impl Model {
    fn read(file: &File) -> Result<Self, Fault> {
        let rows: Vec<Row> = file.get("log_probs")?;
        let rows = rows.into_iter().map(|row| {
            let next = row.next.iter();
            let next = next.map(|p| p.map_or(f32::NEG_INFINITY, |p| p as f32));
            (row.context, next.collect())
        });
        Ok(Self {
            tokens: Tokens {
                vocabulary: file.get("vocabulary")?,
                start: file.get("start")?,
                end: file.get("end")?,
            },
            max_length: file.get("max_length")?,
            rows: rows.collect(),
        })
    }

    /// A beam that no hypothesis falls out of.
    fn everything(&self) -> usize {
        let places = u32::try_from(self.max_length).unwrap_or(u32::MAX);
        self.tokens.vocabulary.saturating_pow(places).min(100_000)
    }

    fn search(&self, beam: usize, alpha: f64, stop: Stop) -> Result<Found, Failure> {
        let config = BeamConfig {
            beam,
            alpha,
            max_length: self.max_length,
            stop,
            ..BeamConfig::default()
        };
        let width = self.tokens.vocabulary;
        beam_search(&self.tokens, &config, |live, log_probs: &mut [f32]| {
            for (hypothesis, row) in live.iter().zip(log_probs.chunks_mut(width)) {
                let context = match hypothesis.tokens[..] {
                    [.., before, last] => [before, last],
                    _ => [self.tokens.start; 2],
                };
                let next = self.rows.get(&context).filter(|next| next.len() == width);
                let row_of = format!("log_probs behind {context:?}");
                let next = next.ok_or_else(|| Fault::entry(&row_of, "given", None));
                row.copy_from_slice(next?);
            }
            Ok(())
        })
    }
}
