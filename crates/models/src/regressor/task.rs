//! What a regressor is to learn.

use crate::Error;
use crate::fingerprint::fingerprint;
use ndarray::{Array1, Array2};

/// A data set as one sequence, and the rows whose targets may be learned from.
///
/// The inputs of all rows are in the sequence (as in the paper); the targets of the others are
/// never read. Rows that are not known yet can be predicted afterwards, with
/// [`Trainer::predict_rows`](super::Trainer::predict_rows).
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    inputs: Array2<f32>,
    target: Array1<f32>,
    train: Vec<usize>,
}

impl Task {
    /// A task with inputs `[N, d]`, targets `[N]` and the training rows.
    ///
    /// # Errors
    /// [`Error::Empty`] without rows, columns or training rows, [`Error::ShapeMismatch`] if there
    /// is not one target a row, [`Error::RowOutOfRange`], [`Error::NotFinite`].
    pub fn new(inputs: Array2<f32>, target: Array1<f32>, train: Vec<usize>) -> Result<Self, Error> {
        let rows = inputs.nrows();
        for (what, length) in [
            ("rows", rows),
            ("columns", inputs.ncols()),
            ("training rows", train.len()),
        ] {
            if length == 0 {
                return Err(Error::Empty { what });
            }
        }
        if target.len() != rows {
            return Err(Error::ShapeMismatch {
                what: "targets, one a row",
                expected: rows,
                got: target.len(),
            });
        }
        if let Some(&index) = train.iter().find(|&&index| index >= rows) {
            return Err(Error::RowOutOfRange { index, rows });
        }
        all_finite("inputs", inputs.iter())?;
        all_finite("target", target.iter())?;
        Ok(Self {
            inputs,
            target,
            train,
        })
    }

    /// Inputs of all rows, `[N, d]`.
    pub fn inputs(&self) -> &Array2<f32> {
        &self.inputs
    }

    /// Targets of all rows, `[N]`.
    pub fn target(&self) -> &Array1<f32> {
        &self.target
    }

    /// The rows to learn from.
    pub fn train(&self) -> &[usize] {
        &self.train
    }

    /// A hash of the inputs, the targets and the training rows.
    pub(super) fn fingerprint(&self) -> String {
        let (rows, columns) = self.inputs.dim();
        let sizes = [rows, columns].into_iter();
        let numbers = sizes.chain(self.train.iter().copied());
        let values = self.inputs.iter().chain(&self.target);
        let values = values.map(|value| value.to_bits());
        fingerprint(numbers.map(|number| number as u32).chain(values))
    }
}

pub(super) fn all_finite<'a>(
    what: &'static str,
    mut values: impl Iterator<Item = &'a f32>,
) -> Result<(), Error> {
    let mut index = 0;
    let wrong = values.find(|value| {
        index += 1;
        !value.is_finite()
    });
    match wrong {
        None => Ok(()),
        Some(&value) => Err(Error::NotFinite {
            what,
            index: index - 1,
            value: value.into(),
        }),
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
            task.unwrap().fingerprint()
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
        assert!(matches!(
            task(inputs.clone(), &[1.0], &[1]),
            Err(Error::ShapeMismatch { .. })
        ));
        assert!(matches!(
            task(inputs.clone(), &[1.0, 2.0], &[]),
            Err(Error::Empty { .. })
        ));
        assert!(matches!(
            task(inputs.clone(), &[1.0, 2.0], &[2]),
            Err(Error::RowOutOfRange { index: 2, rows: 2 })
        ));
        assert!(matches!(
            task(inputs, &[1.0, f32::NAN], &[0]),
            Err(Error::NotFinite {
                what: "target",
                index: 1,
                ..
            })
        ));
        assert!(matches!(
            task(arr2(&[[1.0, f32::INFINITY]]), &[1.0], &[0]),
            Err(Error::NotFinite {
                what: "inputs",
                index: 1,
                ..
            })
        ));
    }
}
