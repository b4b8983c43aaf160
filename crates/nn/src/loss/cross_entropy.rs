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
    let rows = logits.shape().0.size();
    if labels.len() != rows {
        return Err(Error::ShapeMismatch {
            what: "the labels",
            expected: vec![rows],
            got: vec![labels.len()],
        });
    }
    let all: Vec<(usize, usize)> = labels.iter().copied().enumerate().collect();
    cross_entropy_of(logits, &all)
}

/// The mean [`cross_entropy`] of some rows, each with its label; the others are not read.
///
/// # Errors
/// [`Error::IndexOutOfBounds`] for a row that is not there or a label that is no class,
/// [`Error::Empty`] without rows or elements.
///
/// ```
/// use bochner_nn::cross_entropy_of;
/// use dfdx::prelude::*;
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
    let (rows, classes) = *logits.shape();
    let (row, label) = labelled.iter().copied().unzip::<_, _, Vec<_>, Vec<_>>();
    within("the labelled rows", &row, "rows", rows.size())?;
    within("the labels", &label, "classes", classes.size())?;
    if labelled.is_empty() {
        let what = "the list of labels".into();
        return Err(Error::Empty { what });
    }
    let operation = CrossEntropy(labelled.to_vec());
    record_one(operation, Inputs::<E, T>::new().with(logits)?, ())
}

fn within(
    what: &'static str,
    indices: &[usize],
    of: &'static str,
    len: usize,
) -> Result<(), Error> {
    match indices.iter().copied().find(|&index| index >= len) {
        Some(index) => Err(Error::IndexOutOfBounds {
            what,
            index,
            of,
            len,
        }),
        None => Ok(()),
    }
}

/// [`cross_entropy_of`] as an operation on `logits`: rows and their labels.
struct CrossEntropy(Vec<(usize, usize)>);

impl<T: Real> Operation<T> for CrossEntropy {
    /// The gradient of the loss.
    type Saved = Vec<f64>;

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
    ) -> Result<(Vec<ArrayD<T>>, Self::Saved), BoxError> {
        let [logits] = crate::layers::slices(inputs);
        let classes = inputs[0].shape()[1];
        let (mut loss, mut gradient) = (0.0, vec![0.0; logits.len()]);
        let share = 1.0 / self.0.len() as f64;
        for &(r, label) in &self.0 {
            let places = r * classes..(r + 1) * classes;
            let row = &logits[places.clone()];
            let largest = row.iter().fold(f64::NEG_INFINITY, |m, x| m.max(x.as_f64()));
            let power = |x: &T| (x.as_f64() - largest).exp();
            let total: f64 = row.iter().map(power).sum();
            let own = &mut gradient[places];
            own.iter_mut()
                .zip(row)
                .for_each(|(g, x)| *g += power(x) * (share / total));
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
