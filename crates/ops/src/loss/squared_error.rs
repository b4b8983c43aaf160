//! The loss of a regression.

use crate::operation::{BoxError, Operation, Slot, given, slices, slots};
use bochner_numerics::{ArgumentError, Real, argument};
use ndarray::ArrayViewD;

/// The rows (indices of the first axis) that a loss counts, with their weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rows<'a> {
    /// All rows, alike.
    All,
    /// The rows with these indices, alike; an index given twice counts twice.
    At(&'a [usize]),
    /// Each row by its weight; weights are finite, not negative, and not all zero.
    Weighted(&'a [f64]),
}

impl Rows<'_> {
    /// The weight of each row, of sum 1.
    fn weights(&self, rows: usize) -> Result<Vec<f64>, ArgumentError> {
        argument::at_least_one("count of rows", rows)?;
        let mut weights = match self {
            Self::All => vec![1.0; rows],
            Self::At(indices) => count(indices, rows)?,
            Self::Weighted(weights) => {
                argument::shape("the rows' weights", &[rows], &[weights.len()])?;
                for &weight in *weights {
                    argument::non_negative("a row's weight", weight)?;
                }
                weights.to_vec()
            }
        };
        let total: f64 = weights.iter().sum();
        let holds = total > 0.0 && total.is_finite();
        let allowed = "positive and finite; select at least one row";
        argument::in_range(holds, "the sum of the rows' weights", total, allowed)?;
        weights.iter_mut().for_each(|w| *w /= total);
        Ok(weights)
    }
}

fn count(indices: &[usize], rows: usize) -> Result<Vec<f64>, ArgumentError> {
    let mut weights = vec![0.0; rows];
    for &index in indices {
        argument::index("the set of rows", index, rows)?;
        weights[index] += 1.0;
    }
    Ok(weights)
}

/// The mean squared error over the selected rows: an operation on `prediction` and `target`, with one number
/// as its output.
///
/// $$ \sum_r w_r \frac{1}{n} \sum_{i=1}^{n} (y_{ri} - t_{ri})^2 $$
///
/// * $y$: `prediction`, `[N, ...]`
/// * $t$: `target`, of the same shape
/// * $w$: one weight for each of the `N` rows, of sum 1
/// * $n$: the number of elements of a row
///
/// # Numerics
/// Rows of weight zero are not read: they may be NaN. The sum is taken in double precision.
#[derive(Clone, Debug)]
pub struct SquaredError {
    weights: Vec<f64>,
}

impl SquaredError {
    /// The loss over these of `count` rows.
    ///
    /// # Errors
    /// [`ArgumentError`] if there are no rows, for a selection with an index that is no row, a wrong number of
    /// weights, a weight that is negative or not finite, or without any row.
    pub fn new(rows: Rows<'_>, count: usize) -> Result<Self, ArgumentError> {
        let weights = rows.weights(count)?;
        Ok(Self { weights })
    }

    /// Weight, prediction and target of each row that counts, and its number.
    fn rows<'a, T: Real>(
        &'a self,
        y: &'a [T],
        t: &'a [T],
    ) -> impl Iterator<Item = (usize, f64, &'a [T], &'a [T])> {
        let n = y.len() / self.weights.len();
        let pairs = y.chunks_exact(n).zip(t.chunks_exact(n));
        let all = self.weights.iter().zip(pairs).enumerate();
        all.filter(|(_, (w, _))| **w > 0.0)
            .map(move |(r, (&w, (y, t)))| (r, w / n as f64, y, t))
    }
}

impl<T: Real> Operation<T> for SquaredError {
    type Saved = ();

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        let [prediction, target] = given(inputs)?;
        argument::shape("target", prediction, target)?;
        let rows = prediction.first().map_or(1, |&rows| rows);
        argument::shape("the rows' weights", &[rows], &[self.weights.len()])?;
        Ok(vec![Vec::new()])
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<(), BoxError> {
        let ([y, t], [output]) = (slices(inputs), slots(outputs));
        let row = |(_, w, y, t): (usize, f64, &[T], &[T])| {
            let squares = y.iter().zip(t).map(|(&y, &t)| (y - t).as_f64().powi(2));
            w * squares.sum::<f64>()
        };
        let loss: f64 = self.rows(y, t).map(row).sum();
        output.put(vec![T::of(loss)]);
        Ok(())
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        _: &(),
        cotangents: &[ArrayViewD<'_, T>],
        gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        let ([y, t], [dloss]) = (slices(inputs), slices(cotangents));
        let n = y.len() / self.weights.len();
        for (slot, sign) in gradients.into_iter().zip([2.0, -2.0]) {
            let Some(slot) = slot else { continue };
            let mut gradient = vec![T::zero(); y.len()];
            for (r, w, y, t) in self.rows(y, t) {
                let factor = T::of(sign * w) * dloss[0];
                for ((d, &y), &t) in gradient[r * n..(r + 1) * n].iter_mut().zip(y).zip(t) {
                    *d = factor * (y - t);
                }
            }
            slot.put(gradient);
        }
        Ok(())
    }
}
