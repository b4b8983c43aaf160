//! Our results against the expected tensors.

use super::case_file::CaseFile;
use super::error::Fault;
use super::report::{Verdict, Worst};
use bochner_numerics::{Real, Tolerance};
use std::collections::BTreeMap;

/// Results of our code by the names of their tensors. A result that is computed in several ways must be right in each.
pub(crate) type Results = BTreeMap<String, Vec<Vec<f64>>>;

/// Compares every output and every gradient in the file.
pub(crate) fn compare<T: Real>(file: &CaseFile, results: &Results) -> Result<Verdict, Fault> {
    let outputs = file.outputs().map(|(name, _)| format!("out.{name}"));
    let gradients = file.gradients.iter().map(|name| format!("grad.{name}"));
    let mut worst: Option<Worst> = None;
    for tensor in outputs.chain(gradients) {
        let expected = file.tensor(&tensor)?;
        let values = || expected.values().iter().copied();
        let bound = match &*tensor {
            _ if expected.is_integer() => NEXT_INTEGER,
            name if name.starts_with("out.") => Tolerance::outputs::<T>().bound(values()),
            _ => Tolerance::gradients::<T>().bound(values()),
        };
        let Some(ways) = results.get(&tensor) else {
            return Err(Fault::not_computed(&tensor));
        };
        for got in ways {
            if got.len() != expected.values().len() {
                let found = format!("of {} elements by our code", got.len());
                return Err(Fault::wrong(
                    &tensor,
                    found,
                    format!("of shape {:?}", expected.shape()),
                ));
            }
            let found = Worst {
                tensor: tensor.clone(),
                error: largest_difference(got, values()),
                bound,
            };
            let is_worse = |worst: &Worst| found.ratio() >= worst.ratio();
            if worst.as_ref().is_none_or(is_worse) {
                worst = Some(found);
            }
        }
    }
    Ok(worst.expect("a case has at least one output").verdict())
}

/// The bound within which whole numbers are equal.
const NEXT_INTEGER: f64 = 0.5;

/// The largest `|got - expected|`, NaN if there is one among them.
fn largest_difference(got: &[f64], expected: impl Iterator<Item = f64>) -> f64 {
    let differences = got.iter().zip(expected).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, |largest: f64, x| {
        if x.is_nan() || x > largest {
            x
        } else {
            largest
        }
    })
}
