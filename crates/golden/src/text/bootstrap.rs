//! `bootstrap`: intervals and p-values of paired resampling.

use super::File;
use super::findings::SCORE;
use crate::error::{Failure, Fault};
use bochner_text::{BleuConfig, BleuStatistics, BootstrapConfig, Interval, paired_bootstrap};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// For each system and line: two lengths, four matches, four totals.
type Statistics = BTreeMap<String, Vec<[u64; 10]>>;

pub(super) fn bootstrap(file: &File) -> Result<Value, Failure> {
    let (baseline, seed, samples) = (
        file.get("baseline")?,
        file.get("seed")?,
        file.get("samples")?,
    );
    let mut expected: BTreeMap<String, Value> = file.get("expected")?;
    let all: Statistics = file.get("statistics")?;
    let lines = |name: &str| -> Result<Vec<_>, Fault> {
        let lines = all.get(name);
        let lines = lines.ok_or_else(|| Fault::entry(name, "among the statistics", None))?;
        Ok(lines.iter().map(statistics).collect())
    };
    let names = expected.keys().filter(|name| **name != baseline);
    let systems = names
        .map(|name| lines(name))
        .collect::<Result<Vec<_>, _>>()?;
    let config = BootstrapConfig { samples, seed };
    let bleu = BleuConfig::default();
    let found = paired_bootstrap(&lines(baseline)?, &systems, &bleu, &config)?;
    let mut systems = found.systems.iter();
    for (name, stated) in &mut expected {
        let system = match name == baseline {
            true => None,
            false => systems.next(),
        };
        let interval = system.map_or(&found.baseline, |system| &system.interval);
        *stated = values(
            interval,
            system.map(|system| system.p_value),
            &stated["other_seeds"],
        );
    }
    Ok(json!({ "expected": expected }))
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
        let range = <[f64; 2]>::deserialize(&seeds[name]).ok();
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
