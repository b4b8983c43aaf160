//! The task of a regressor.

use crate::Error;
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
}
