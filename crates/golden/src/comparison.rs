//! Our results against the expected tensors.

use super::case_file::CaseFile;
use super::error::Fault;
use super::report::{Verdict, Worst};
use bochner_numerics::{Real, Tolerance};
use ndarray::{ArrayBase, ArrayD, Data, Dimension};
use std::collections::BTreeMap;

/// The results of our code for the inputs of a case, by name.
#[derive(Default)]
pub(crate) struct Computed {
    outputs: Results,
    gradients: Results,
}

/// By name; whatever is computed in several ways must be right in each.
type Results = BTreeMap<String, Vec<ArrayD<f64>>>;

impl Computed {
    /// Records an output; one that the file does not hold is not looked at.
    pub(crate) fn output<T: Real, D: Dimension>(
        &mut self,
        name: &str,
        x: &ArrayBase<impl Data<Elem = T>, D>,
    ) {
        record(&mut self.outputs, name, x);
    }

    /// Records the gradient with respect to the input `name`.
    pub(crate) fn gradient<T: Real, D: Dimension>(
        &mut self,
        name: &str,
        x: &ArrayBase<impl Data<Elem = T>, D>,
    ) {
        record(&mut self.gradients, name, x);
    }

    /// The number of ways in which an output was computed.
    #[cfg(test)]
    pub(crate) fn ways(&self, name: &str) -> usize {
        self.outputs.get(name).map_or(0, Vec::len)
    }
}

fn record<T: Real, D: Dimension>(
    results: &mut Results,
    name: &str,
    x: &ArrayBase<impl Data<Elem = T>, D>,
) {
    let ways = results.entry(name.to_owned()).or_default();
    ways.push(x.mapv(T::as_f64).into_dyn());
}

/// Compares every output and every gradient in the file.
pub(crate) fn compare<T: Real>(file: &CaseFile, computed: &Computed) -> Result<Verdict, Fault> {
    let mut deviations = Vec::new();
    for (name, expected) in file.outputs() {
        let (tensor, values) = (format!("out.{name}"), expected.values());
        let bound = match expected.is_integer() {
            true => NEXT_INTEGER,
            false => Tolerance::outputs::<T>().bound(values.iter().copied()),
        };
        deviations.push(worst(tensor, computed.outputs.get(name), values, bound)?);
    }
    for name in file.gradients() {
        let tensor = format!("grad.{name}");
        let expected = file.tensor(&tensor)?.float(&tensor)?;
        let ways = computed.gradients.get(name);
        let bound = Tolerance::gradients::<T>().bound(expected.iter().copied());
        deviations.push(worst(tensor, ways, expected, bound)?);
    }
    let worst = largest(deviations).expect("a case has at least one output");
    Ok(if worst.within() {
        Verdict::Passed(worst)
    } else {
        Verdict::Exceeded(worst)
    })
}

/// The bound within which whole numbers are equal.
const NEXT_INTEGER: f64 = 0.5;

/// The worst of all ways in which a tensor was computed.
fn worst(
    tensor: String,
    ways: Option<&Vec<ArrayD<f64>>>,
    expected: &ArrayD<f64>,
    bound: f64,
) -> Result<Worst, Fault> {
    let ways = ways.into_iter().flatten();
    let deviations = ways.map(|got| deviation(tensor.clone(), got, expected, bound));
    let deviations: Vec<Worst> = deviations.collect::<Result<_, _>>()?;
    largest(deviations).ok_or(Fault::NotComputed { tensor })
}

fn largest(deviations: Vec<Worst>) -> Option<Worst> {
    let deviations = deviations.into_iter();
    deviations.max_by(|a, b| a.ratio().total_cmp(&b.ratio()))
}

fn deviation(
    tensor: String,
    got: &ArrayD<f64>,
    expected: &ArrayD<f64>,
    bound: f64,
) -> Result<Worst, Fault> {
    if got.shape() != expected.shape() {
        return Err(Fault::ResultShape {
            tensor,
            expected: expected.shape().to_vec(),
            got: got.shape().to_vec(),
        });
    }
    Ok(Worst {
        error: largest_difference(got, expected),
        bound,
        tensor,
    })
}

/// The largest `|got - expected|`, NaN if there is one among them.
fn largest_difference(got: &ArrayD<f64>, expected: &ArrayD<f64>) -> f64 {
    let differences = got.iter().zip(expected).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, |largest: f64, x| {
        if x.is_nan() || x > largest {
            x
        } else {
            largest
        }
    })
}
