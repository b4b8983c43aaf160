//! The loss of a classification.

use crate::{BoxError, Element, Error, Inputs, Operation, record_one};
use bochner_numerics::Real;
use dfdx::shapes::{Dim, HasShape};
use dfdx::tensor::{Cpu, Tape, Tensor};
use ndarray::{ArrayD, ArrayViewD, IxDyn};

/// The mean cross-entropy of softmax probabilities; one operation on the tape.
///
/// $$ \frac{1}{N} \sum_{r=1}^{N} \Bigl( \log \sum_{c=1}^{C} e^{x_{rc}} - x_{r, l_r} \Bigr) $$
///
/// * $x$: `logits`, `[N, C]`
/// * $l$: `labels`, `N` numbers below `C`
///
/// # Errors
/// [`Error::ShapeMismatch`] unless there is one label a row, [`Error::IndexOutOfBounds`] for a label
/// that is no class, [`Error::Empty`] without elements.
///
/// # Numerics
/// Relative to the largest logit of a row, and in double precision: no finite logits overflow.
///
/// ```
/// use bochner_nn::cross_entropy;
/// use dfdx::prelude::*;
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
    let (rows, classes) = *logits.shape();
    if labels.len() != rows.size() {
        return Err(Error::ShapeMismatch {
            what: "the labels",
            expected: vec![rows.size()],
            got: vec![labels.len()],
        });
    }
    if let Some(&index) = labels.iter().find(|&&label| label >= classes.size()) {
        return Err(Error::IndexOutOfBounds {
            what: "the labels",
            index,
            len: classes.size(),
        });
    }
    let operation = CrossEntropy(labels.to_vec());
    record_one(operation, Inputs::<E, T>::new().with(logits)?, ())
}

/// [`cross_entropy`] as an operation on `logits`.
struct CrossEntropy(Vec<usize>);

impl<T: Real> Operation<T> for CrossEntropy {
    /// The gradient of the loss.
    type Saved = Vec<f64>;

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
    ) -> Result<(Vec<ArrayD<T>>, Self::Saved), BoxError> {
        let [logits] = crate::layers::slices(inputs);
        let (mut loss, mut gradient) = (0.0, Vec::with_capacity(logits.len()));
        let share = 1.0 / self.0.len() as f64;
        let rows = logits.chunks_exact(logits.len() / self.0.len());
        for (row, &label) in rows.zip(&self.0) {
            let largest = row.iter().fold(f64::NEG_INFINITY, |m, x| m.max(x.as_f64()));
            let start = gradient.len();
            gradient.extend(row.iter().map(|x| (x.as_f64() - largest).exp()));
            let own = &mut gradient[start..];
            let total: f64 = own.iter().sum();
            own.iter_mut().for_each(|p| *p *= share / total);
            own[label] -= share;
            loss += share * (total.ln() + (largest - row[label].as_f64()));
        }
        let loss = ArrayD::from_elem(IxDyn(&[]), T::of(loss));
        Ok((vec![loss], gradient))
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        gradient: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
    ) -> Result<Vec<Option<ArrayD<T>>>, BoxError> {
        let [dloss] = crate::layers::slices(cotangents);
        let scaled = gradient.iter().map(|&g| T::of(g) * dloss[0]).collect();
        let shape = inputs[0].raw_dim();
        Ok(vec![Some(ArrayD::from_shape_vec(shape, scaled)?)])
    }
}
