//! The loss of a regression.

use crate::{BoxError, Element, Error, Inputs, Operation, record_one};
use bochner_numerics::Real;
use dfdx::shapes::{HasShape, Shape};
use dfdx::tensor::{Cpu, Tape, Tensor};
use ndarray::{ArrayD, ArrayViewD, IxDyn};

/// Which rows (indices of the first axis) a loss counts, and how much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rows<'a> {
    /// All of them, alike.
    All,
    /// Those with the given indices, alike; an index given twice counts twice.
    At(&'a [usize]),
    /// Each by its weight: finite, not negative, not all zero.
    Weighted(&'a [f64]),
}

impl Rows<'_> {
    /// The weight of each row, of sum 1.
    fn weights(&self, rows: usize) -> Result<Vec<f64>, Error> {
        let mut weights = match self {
            Self::All => vec![1.0; rows],
            Self::At(indices) => count(indices, rows)?,
            Self::Weighted(weights) => checked(weights, rows)?,
        };
        let total: f64 = weights.iter().sum();
        if !(total > 0.0 && total.is_finite()) {
            return Err(Error::OutOfRange {
                what: "the sum of the rows' weights",
                got: total,
                requirement: "positive and finite; select at least one row",
            });
        }
        weights.iter_mut().for_each(|w| *w /= total);
        Ok(weights)
    }
}

fn count(indices: &[usize], rows: usize) -> Result<Vec<f64>, Error> {
    let mut weights = vec![0.0; rows];
    for &index in indices {
        *weights.get_mut(index).ok_or(Error::IndexOutOfBounds {
            what: "the set of rows",
            index,
            of: "rows",
            len: rows,
        })? += 1.0;
    }
    Ok(weights)
}

fn checked(weights: &[f64], rows: usize) -> Result<Vec<f64>, Error> {
    if weights.len() != rows {
        return Err(Error::ShapeMismatch {
            what: "the rows' weights",
            expected: vec![rows],
            got: vec![weights.len()],
        });
    }
    match weights.iter().find(|w| !(w.is_finite() && **w >= 0.0)) {
        Some(&got) => Err(Error::OutOfRange {
            what: "a row's weight",
            got,
            requirement: "finite and not negative",
        }),
        None => Ok(weights.to_vec()),
    }
}

/// The mean squared error over the selected rows; one operation on the tape.
///
/// $$ \frac{1}{\sum_r w_r} \sum_r w_r \frac{1}{n} \sum_{i=1}^{n} (y_{ri} - t_{ri})^2 $$
///
/// * $y$: `prediction`, `[N, ...]`
/// * $t$: `target`, of the same shape; a constant: no gradient reaches it
/// * $w$: from `rows`, one for each of the `N` rows
/// * $n$: the number of elements of a row
///
/// # Errors
/// [`Error::ShapeMismatch`] if the shapes or the number of weights differ,
/// [`Error::IndexOutOfBounds`] and [`Error::OutOfRange`] for a selection that makes no sense or is
/// empty, [`Error::Empty`] without elements.
///
/// # Numerics
/// Rows of weight zero are not read: they may be NaN. Summed in double precision.
///
/// ```
/// use bochner_nn::{Rows, mean_squared_error};
/// use dfdx::prelude::*;
///
/// let device = Cpu::default();
/// let prediction = device.tensor([[1.0_f32], [5.0], [3.0]]);
/// let target = device.tensor([[0.0], [5.0], [f32::NAN]]);
/// let loss = mean_squared_error(prediction.leaky_trace(), target, Rows::At(&[0, 1]))?;
/// assert_eq!(loss.array(), 0.5);
/// assert_eq!(loss.backward().get(&prediction).array(), [[1.0], [0.0], [0.0]]);
/// # Ok::<(), bochner_nn::Error>(())
/// ```
pub fn mean_squared_error<S: Shape, E: Element, T: Tape<E, Cpu>>(
    prediction: Tensor<S, E, Cpu, T>,
    target: Tensor<S, E, Cpu>,
    rows: Rows<'_>,
) -> Result<Tensor<(), E, Cpu, T>, Error> {
    let expected: Vec<usize> = prediction.shape().concrete().into();
    let got: Vec<usize> = target.shape().concrete().into();
    if expected != got {
        return Err(Error::ShapeMismatch {
            what: "the target",
            expected,
            got,
        });
    }
    let inputs = Inputs::<E, T>::new().with(prediction)?.with(target)?;
    let weights = rows.weights(expected.first().copied().unwrap_or(1))?;
    record_one(SquaredError(weights), inputs, ())
}

/// [`mean_squared_error`] as an operation on `prediction` and `target`.
struct SquaredError(Vec<f64>);

impl SquaredError {
    /// Weight, prediction and target of each row that counts, and its number.
    fn rows<'a, T: Real>(
        &'a self,
        y: &'a [T],
        t: &'a [T],
    ) -> impl Iterator<Item = (usize, f64, &'a [T], &'a [T])> {
        let n = y.len() / self.0.len();
        let pairs = y.chunks_exact(n).zip(t.chunks_exact(n));
        let all = self.0.iter().zip(pairs).enumerate();
        all.filter(|(_, (w, _))| **w > 0.0)
            .map(move |(r, (&w, (y, t)))| (r, w / n as f64, y, t))
    }
}

impl<T: Real> Operation<T> for SquaredError {
    type Saved = ();

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
    ) -> Result<(Vec<ArrayD<T>>, Self::Saved), BoxError> {
        let [y, t] = crate::layers::slices(inputs);
        let row = |(_, w, y, t): (usize, f64, &[T], &[T])| {
            let squares = y.iter().zip(t).map(|(&y, &t)| (y - t).as_f64().powi(2));
            w * squares.sum::<f64>()
        };
        let loss: f64 = self.rows(y, t).map(row).sum();
        Ok((vec![ArrayD::from_elem(IxDyn(&[]), T::of(loss))], ()))
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        _: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
    ) -> Result<Vec<Option<ArrayD<T>>>, BoxError> {
        let [y, t] = crate::layers::slices(inputs);
        let [dloss] = crate::layers::slices(cotangents);
        let n = y.len() / self.0.len();
        let mut dy = vec![T::zero(); y.len()];
        for (r, w, y, t) in self.rows(y, t) {
            let factor = T::of(2.0 * w) * dloss[0];
            for ((dy, &y), &t) in dy[r * n..(r + 1) * n].iter_mut().zip(y).zip(t) {
                *dy = factor * (y - t);
            }
        }
        let dy = ArrayD::from_shape_vec(inputs[0].raw_dim(), dy)?;
        Ok(vec![Some(dy), None])
    }
}
