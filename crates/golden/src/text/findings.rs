//! Our values against those of a file.

use crate::error::Fault;
use crate::report::{Verdict, Worst};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The largest difference of scores, precisions and means, all of the order of 100 at most.
pub(super) const SCORE: f64 = 1e-9;

/// The largest difference of the numbers behind this path.
fn bound(path: &str) -> f64 {
    let name = path.rsplit('.').next().unwrap_or(path);
    match name.split('[').next() {
        Some("log_prob") => 0.0,
        // sacrebleu divides in single precision.
        Some(name) if name.starts_with("sacrebleu_") => 1e-4,
        _ => SCORE,
    }
}

/// Compares everything in the file's `expected`, and what else is computed with the file's value of that name.
pub(super) fn compare(ours: &Value, file: &Map<String, Value>) -> Result<Verdict, Fault> {
    let mut found = Vec::new();
    for (name, ours) in ours.as_object().into_iter().flatten() {
        let (mut computed, mut expected) = (BTreeMap::new(), BTreeMap::new());
        add_leaves(name, ours, &mut computed);
        add_leaves(name, file.get(name).unwrap_or(&Value::Null), &mut expected);
        if name != "expected" {
            expected.retain(|path, _| computed.contains_key(path));
        }
        for (path, expected) in expected {
            let Some(ours) = computed.remove(&path) else {
                return Err(Fault::not_computed(&path));
            };
            found.push(difference(path, &ours, &expected)?);
        }
    }
    let found = found.into_iter();
    let worst = found.max_by(|a, b| a.ratio().total_cmp(&b.ratio()));
    let nothing = || Fault::not_computed("nothing at all");
    worst.map(Worst::verdict).ok_or_else(nothing)
}

/// The values within a value by their paths, and the lengths of its lists.
fn add_leaves(path: &str, value: &Value, leaves: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                add_leaves(&format!("{path}.{name}"), value, leaves);
            }
        }
        Value::Array(list) => {
            leaves.insert(format!("length of {path}"), list.len().into());
            for (at, value) in list.iter().enumerate() {
                add_leaves(&format!("{path}[{at}]"), value, leaves);
            }
        }
        _ => {
            leaves.insert(path.to_owned(), value.clone());
        }
    }
}

/// The difference of two numbers; all other values, and counts, must be equal.
fn difference(path: String, ours: &Value, expected: &Value) -> Result<Worst, Fault> {
    let are_counts = ours.is_u64() && expected.is_u64();
    let error = match (ours.as_f64(), expected.as_f64()) {
        _ if ours == expected => 0.0,
        (Some(a), Some(b)) if !are_counts => (a - b).abs(),
        _ => {
            let ours = format!("{} by our code", shortened(ours));
            return Err(Fault::wrong(&path, ours, shortened(expected)));
        }
    };
    Ok(Worst {
        bound: bound(&path),
        tensor: path,
        error,
    })
}

fn shortened(value: &Value) -> String {
    const LONGEST: usize = 200;
    value.to_string().chars().take(LONGEST).collect()
}
