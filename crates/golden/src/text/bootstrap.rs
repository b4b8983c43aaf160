//! `bootstrap`: intervals and p-values of paired resampling.

use super::findings::SCORE;
use super::{File, parse};
use crate::error::{Failure, Fault};
use bochner_text::bleu::Pcg64;
use bochner_text::{BleuConfig, BleuStatistics, BootstrapConfig, Interval, paired_bootstrap};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    seed: u64,
    samples: usize,
    baseline: String,
    #[serde(rename = "pcg64")]
    _pcg64: Value,
    first_indices: Vec<u32>,
    last_indices: Vec<u32>,
    #[serde(rename = "sum_of_indices")]
    _sum_of_indices: u64,
    /// For each system and line: two lengths, four matches, four totals.
    statistics: BTreeMap<String, Vec<[u64; 10]>>,
    expected: BTreeMap<String, Value>,
}

pub(super) fn bootstrap(file: &File) -> Result<Value, Failure> {
    let case: Case = file.parse()?;
    let lines = |name: &str| {
        let lines = case.statistics.get(name).ok_or_else(|| Fault::Entry {
            key: "statistics".to_owned(),
            expected: format!("to hold the system {name}"),
            got: format!("{:?}", case.statistics.keys()),
        })?;
        Ok::<_, Fault>(lines.iter().map(statistics).collect::<Vec<_>>())
    };
    let names = case.expected.keys().filter(|name| **name != case.baseline);
    let names: Vec<&String> = names.collect();
    let systems: Vec<_> = names
        .iter()
        .map(|name| lines(name))
        .collect::<Result<_, _>>()?;
    let config = BootstrapConfig {
        samples: case.samples,
        seed: case.seed,
    };
    let bleu = BleuConfig::default();
    let found = paired_bootstrap(&lines(&case.baseline)?, &systems, &bleu, &config)?;
    let baseline = [(&case.baseline, &found.baseline, None)];
    let systems = names.into_iter().zip(&found.systems);
    let systems = systems.map(|(name, system)| (name, &system.interval, Some(system.p_value)));
    let mut expected = BTreeMap::new();
    for (name, interval, p_value) in baseline.into_iter().chain(systems) {
        let seeds = case.expected.get(name).map(|stated| &stated["other_seeds"]);
        expected.insert(
            name,
            values(interval, p_value, seeds.unwrap_or(&Value::Null)),
        );
    }
    let mut values = draws(&case);
    values["expected"] = json!(expected);
    Ok(values)
}

/// The generator: its state, and the lines that it draws.
fn draws(case: &Case) -> Value {
    let mut rng = Pcg64::new(case.seed);
    let (state, increment) = rng.state();
    let lines = case.statistics.values().next().map_or(0, Vec::len);
    let drawn = (0..lines * case.samples).map(|_| rng.below(lines as u32));
    let drawn: Vec<u32> = drawn.collect();
    let last = drawn.len().saturating_sub(case.last_indices.len());
    json!({
        "pcg64": { "state": state.to_string(), "increment": increment.to_string() },
        "sum_of_indices": drawn.iter().copied().map(u64::from).sum::<u64>(),
        "first_indices": drawn[..case.first_indices.len().min(drawn.len())],
        "last_indices": drawn[last..],
    })
}

fn statistics(row: &[u64; 10]) -> BleuStatistics {
    BleuStatistics {
        hypothesis_length: row[0],
        reference_length: row[1],
        matches: row[2..6].to_vec(),
        totals: row[6..].to_vec(),
    }
}

/// The values of a system. `seeds` states the ranges of results with other draws, in which ours must lie.
fn values(got: &Interval, p_value: Option<f64>, seeds: &Value) -> Value {
    let within = |name: &str, got: f64| {
        let range: Option<[f64; 2]> = parse(seeds[name].clone()).ok();
        let holds = |[low, high]: &[f64; 2]| low - SCORE <= got && got <= high + SCORE;
        json!(range.filter(holds).unwrap_or([got; 2]))
    };
    let mut other_seeds = json!({
        "mean": within("mean", got.mean),
        "low": within("low", got.low),
        "high": within("high", got.high),
    });
    let mut values = json!({
        "score": got.score,
        "mean": got.mean,
        "low": got.low,
        "high": got.high,
        "half_width": got.half_width(),
        "sacrebleu_mean": got.mean,
        "sacrebleu_half_width": got.half_width(),
    });
    if let Some(p_value) = p_value {
        other_seeds["p_value"] = within("p_value", p_value);
        values["p_value"] = json!(p_value);
        values["sacrebleu_p_value"] = json!(p_value);
    }
    values["other_seeds"] = other_seeds;
    values
}
