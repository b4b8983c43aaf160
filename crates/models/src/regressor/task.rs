//! The task of a regressor.

use crate::Error;
use crate::fingerprint::fingerprint;
use bochner_numerics::argument;
use ndarray::{ArcArray1, Array1, Array2};

/// A data set as one sequence, and the rows whose targets may be learned from.
///
/// The inputs of all rows are in the sequence (as in the paper); the targets of the others are
/// never read. Rows that are not known yet can be predicted afterwards, with
/// [`Trainer::predict_rows`](super::Trainer::predict_rows).
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    inputs: Array2<f32>,
    /// Shared with the tape of every step.
    target: ArcArray1<f32>,
    train: Vec<usize>,
}

impl Task {
    /// A task with inputs `[N, d]`, targets `[N]` and the training rows.
    ///
    /// # Errors
    /// [`Error::Argument`] without rows, columns or training rows, if there is not one target a row, a training
    /// row is not there, or a number is not finite.
    pub fn new(inputs: Array2<f32>, target: Array1<f32>, train: Vec<usize>) -> Result<Self, Error> {
        let rows = inputs.nrows();
        for (what, length) in [
            ("rows", rows),
            ("columns", inputs.ncols()),
            ("training rows", train.len()),
        ] {
            argument::at_least_one(what, length)?;
        }
        argument::shape("target", &[rows], target.shape())?;
        for &row in &train {
            argument::index("training rows", row, rows)?;
        }
        argument::finite("inputs", inputs.shape(), &inputs)?;
        argument::finite("target", target.shape(), &target)?;
        Ok(Self {
            inputs,
            target: target.into_shared(),
            train,
        })
    }

    /// Inputs of all rows, `[N, d]`.
    pub fn inputs(&self) -> &Array2<f32> {
        &self.inputs
    }

    /// Targets of all rows, `[N]`.
    pub fn target(&self) -> &ArcArray1<f32> {
        &self.target
    }

    /// The rows to learn from.
    pub fn train(&self) -> &[usize] {
        &self.train
    }

    /// A hash of the inputs, the targets and the training rows.
    pub(super) fn hash(&self) -> String {
        let (rows, columns) = self.inputs.dim();
        let sizes = [rows, columns].into_iter();
        let numbers = sizes.chain(self.train.iter().copied());
        let values = self.inputs.iter().chain(&self.target);
        let values = values.map(|value| value.to_bits());
        fingerprint(numbers.map(|number| number as u32).chain(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{arr1, arr2};

    #[test]
    fn every_part_of_a_task_counts() {
        let found = |inputs: [[f32; 1]; 2], target: [f32; 2], train: &[usize]| {
            let task = Task::new(arr2(&inputs), arr1(&target), train.to_vec());
            task.unwrap().hash()
        };
        let same = found([[1.0], [2.0]], [3.0, 4.0], &[1]);
        assert_eq!(same, found([[1.0], [2.0]], [3.0, 4.0], &[1]));
        for other in [
            found([[1.0], [2.5]], [3.0, 4.0], &[1]),
            found([[1.0], [2.0]], [4.0, 3.0], &[1]),
            found([[1.0], [2.0]], [3.0, 4.0], &[0]),
            found([[1.0], [2.0]], [3.0, 4.0], &[0, 1]),
        ] {
            assert_ne!(other, same);
        }
    }

    #[test]
    fn misfits_are_refused() {
        let task = |inputs: Array2<f32>, target: &[f32], train: &[usize]| {
            Task::new(inputs, arr1(target), train.to_vec())
        };
        let inputs = arr2(&[[1.0], [2.0]]);
        assert!(task(inputs.clone(), &[1.0, 2.0], &[1]).is_ok());
        let infinite = arr2(&[[1.0, f32::INFINITY]]);
        for (inputs, target, train, message) in [
            (
                inputs.clone(),
                &[1.0][..],
                &[1][..],
                "`target` has length 1",
            ),
            (inputs.clone(), &[1.0, 2.0], &[], "`training rows` is 0"),
            (
                inputs.clone(),
                &[1.0, 2.0],
                &[2],
                "`training rows` holds the index 2",
            ),
            (inputs, &[1.0, f32::NAN], &[0], "`target` is NaN at [1]"),
            (infinite, &[1.0], &[0], "`inputs` is inf at [0, 1]"),
        ] {
            let error = task(inputs, target, train).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
