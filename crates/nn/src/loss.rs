//! Losses of tensors.

use crate::{Element, Error, TapeInputs, record_one};
use bochner_numerics::argument;
use bochner_ops::{CrossEntropy, Rows, SquaredError};
use dfdx::shapes::{Dim, HasShape, Shape};
use dfdx::tensor::{Cpu, Tape, Tensor};
use ndarray::{ArcArray, Dimension};

/// The mean cross-entropy of softmax probabilities: [`CrossEntropy`] of all rows as one operation on the
/// tape.
///
/// # Errors
/// [`Error::Argument`] unless there is one label a row, for a label that is no class, or without elements.
///
/// ```
/// use bochner_nn::cross_entropy;
/// use bochner_nn::dfdx::prelude::*;
///
/// let logits = Cpu::default().tensor([[0.0_f64, 0.0], [1000.0, 0.0]]);
/// let loss = cross_entropy(logits.leaky_trace(), &[1, 0])?;
/// assert!((loss.array() - 2.0_f64.ln() / 2.0).abs() < 1e-15);
/// assert_eq!(loss.backward().get(&logits).array(), [[0.25, -0.25], [0.0, 0.0]]);
/// # Ok::<(), bochner_nn::Error>(())
/// ```
pub fn cross_entropy<N: Dim, C: Dim, E: Element, T: Tape<E, Cpu>>(
    logits: Tensor<(N, C), E, Cpu, T>,
    labels: &[usize],
) -> Result<Tensor<(), E, Cpu, T>, Error> {
    argument::shape("labels", &[logits.shape().0.size()], &[labels.len()])?;
    let all: Vec<(usize, usize)> = labels.iter().copied().enumerate().collect();
    cross_entropy_of(logits, &all)
}

/// The mean [`cross_entropy`] of some rows, each with its label; the others are not read.
///
/// # Errors
/// [`Error::Argument`] for a row that is not there, a label that is no class, or without rows or elements.
///
/// ```
/// use bochner_nn::cross_entropy_of;
/// use bochner_nn::dfdx::prelude::*;
///
/// let logits = Cpu::default().tensor([[f64::NAN, 0.0], [0.0, 0.0]]);
/// let loss = cross_entropy_of(logits.leaky_trace(), &[(1, 0)])?;
/// assert_eq!(loss.backward().get(&logits).array(), [[0.0, 0.0], [-0.5, 0.5]]);
/// # Ok::<(), bochner_nn::Error>(())
/// ```
pub fn cross_entropy_of<N: Dim, C: Dim, E: Element, T: Tape<E, Cpu>>(
    logits: Tensor<(N, C), E, Cpu, T>,
    labelled: &[(usize, usize)],
) -> Result<Tensor<(), E, Cpu, T>, Error> {
    argument::at_least_one("number of labels", labelled.len())?;
    let loss = CrossEntropy {
        labelled: labelled.to_vec(),
        smoothing: 0.0,
    };
    classification_loss(logits, loss)
}

/// Any [`CrossEntropy`], with label smoothing for instance, as one operation on the tape.
///
/// # Errors
/// [`Error::Argument`] for a row that is not there, a label that is no class, a smoothing outside `0..=1`, or without
/// elements.
pub fn classification_loss<N: Dim, C: Dim, E: Element, T: Tape<E, Cpu>>(
    logits: Tensor<(N, C), E, Cpu, T>,
    loss: CrossEntropy,
) -> Result<Tensor<(), E, Cpu, T>, Error> {
    record_one(loss, TapeInputs::<E, T>::new().with(logits)?, ())
}

/// The mean squared error over the selected rows: [`SquaredError`] as one operation on the tape. The target
/// is a constant, whose elements are shared, not copied ([`TapeInputs::with_constant`]).
///
/// # Errors
/// [`Error::Argument`] if the shapes or the number of weights differ, for a selection that makes no sense or is
/// empty, or without elements.
///
/// ```
/// use bochner_nn::mean_squared_error;
/// use bochner_ops::Rows;
/// use bochner_nn::dfdx::prelude::*;
/// use bochner_nn::ndarray::array;
///
/// let prediction = Cpu::default().tensor([[1.0_f32], [5.0], [3.0]]);
/// let target = array![[0.0], [5.0], [f32::NAN]].into_shared();
/// let loss = mean_squared_error(prediction.leaky_trace(), target, Rows::At(&[0, 1]))?;
/// assert_eq!(loss.array(), 0.5);
/// assert_eq!(loss.backward().get(&prediction).array(), [[1.0], [0.0], [0.0]]);
/// # Ok::<(), bochner_nn::Error>(())
/// ```
pub fn mean_squared_error<S: Shape, D: Dimension, E: Element, T: Tape<E, Cpu>>(
    prediction: Tensor<S, E, Cpu, T>,
    target: ArcArray<E, D>,
    rows: Rows<'_>,
) -> Result<Tensor<(), E, Cpu, T>, Error> {
    let shape: Vec<usize> = prediction.shape().concrete().into();
    let inputs = TapeInputs::<E, T>::new().with(prediction)?;
    let loss = SquaredError::new(rows, shape.first().copied().unwrap_or(1))?;
    record_one(loss, inputs.with_constant(target)?, ())
}
