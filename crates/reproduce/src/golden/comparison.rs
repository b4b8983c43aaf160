//! Our results against the expected tensors.

use super::case_file::CaseFile;
use super::error::Fault;
use super::report::{Verdict, Worst};
use bochner_numerics::{Real, Tolerance};
use ndarray::{Array, ArrayD, Dimension};
use std::collections::BTreeMap;

/// What our code made of the inputs of a case, by name.
#[derive(Default)]
pub(crate) struct Computed {
    outputs: BTreeMap<String, ArrayD<f64>>,
    gradients: BTreeMap<String, ArrayD<f64>>,
}

impl Computed {
    /// Records an output; one that the file does not hold is not looked at.
    pub(crate) fn output<T: Real, D: Dimension>(&mut self, name: &str, x: &Array<T, D>) {
        self.outputs.insert(name.to_owned(), widened(x));
    }

    /// Records the gradient with respect to the input `name`.
    pub(crate) fn gradient<T: Real, D: Dimension>(&mut self, name: &str, x: &Array<T, D>) {
        self.gradients.insert(name.to_owned(), widened(x));
    }
}

fn widened<T: Real, D: Dimension>(x: &Array<T, D>) -> ArrayD<f64> {
    x.mapv(T::as_f64).into_dyn()
}

/// Compares every output and every gradient in the file.
pub(crate) fn compare<T: Real>(file: &CaseFile, computed: &Computed) -> Result<Verdict, Fault> {
    let mut deviations = Vec::new();
    for (name, expected) in file.outputs() {
        let tensor = format!("out.{name}");
        let expected = expected.float(&tensor)?;
        let got = computed.outputs.get(name);
        deviations.push(deviation(tensor, got, expected, Tolerance::outputs::<T>())?);
    }
    for name in file.gradients() {
        let tensor = format!("grad.{name}");
        let expected = file.tensor(&tensor)?.float(&tensor)?;
        let got = computed.gradients.get(name);
        deviations.push(deviation(
            tensor,
            got,
            expected,
            Tolerance::gradients::<T>(),
        )?);
    }
    let worst = deviations
        .into_iter()
        .max_by(|a, b| a.ratio().total_cmp(&b.ratio()));
    let worst = worst.expect("a case has at least one output");
    Ok(if worst.within() {
        Verdict::Passed(worst)
    } else {
        Verdict::Exceeded(worst)
    })
}

fn deviation(
    tensor: String,
    got: Option<&ArrayD<f64>>,
    expected: &ArrayD<f64>,
    tolerance: Tolerance,
) -> Result<Worst, Fault> {
    let Some(got) = got else {
        return Err(Fault::NotComputed { tensor });
    };
    if got.shape() != expected.shape() {
        return Err(Fault::ResultShape {
            tensor,
            expected: expected.shape().to_vec(),
            got: got.shape().to_vec(),
        });
    }
    Ok(Worst {
        error: largest_difference(got, expected),
        bound: tolerance.bound(expected.iter().copied()),
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
