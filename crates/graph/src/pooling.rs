//! Pooling: one row for each graph of a batch, from the rows of its nodes.

use crate::error::finite;
use crate::layers::matrix;
use crate::sums::RowSum;
use crate::{Batch, Error};
#[cfg(feature = "dfdx")]
use bochner_nn::{Element, TapeInputs, record_one};
use bochner_numerics::scaling::bounded;
use bochner_numerics::{ArgumentError, Real, argument};
use bochner_ops::{BoxError, Operation, Slot, given, slots};
#[cfg(feature = "dfdx")]
use dfdx::shapes::HasShape;
#[cfg(feature = "dfdx")]
use dfdx::tensor::{Cpu, Tape, Tensor};
use ndarray::{Array2, ArrayView2, ArrayViewD};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The way in which the rows of a graph's nodes become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pooling {
    /// The mean.
    #[default]
    #[doc(alias = "global_mean_pool")]
    Mean,
    /// The sum.
    #[doc(alias = "global_add_pool")]
    Sum,
    /// The largest number of each column; the first of equal ones has the gradient.
    #[doc(alias = "global_max_pool")]
    Max,
}

/// The rows of the nodes of each graph, pooled.
///
/// $$y_g = \frac1{n_g} \sum_{i \in g} x_i, \qquad y_g = \sum_{i \in g} x_i \qquad \text{or} \qquad
///   y_{gc} = \max_{i \in g} x_{ic}$$
///
/// # Shapes
/// `x: [N, F]`, N the targets of all graphs, to `[B, F]` for a batch of B graphs. A graph without nodes has zeros.
///
/// # Errors
/// [`Error::Argument`] for another number of rows, NaN or infinity.
///
/// # Numerics
/// A sum beyond the range of the type is its largest number, never NaN.
///
/// ```
/// use bochner_graph::ndarray::array;
/// use bochner_graph::{Batch, Graph, Pooling, pool};
///
/// let pair = Graph::from_edges(2, [(0, 1)])?;
/// let single = Graph::from_edges(1, [])?;
/// let batch = Batch::new([&pair, &single])?;
/// let x = array![[1.0, 5.0], [3.0, 2.0], [7.0, 8.0]];
/// assert_eq!(pool(x.view(), &batch, Pooling::Mean)?, array![[2.0, 3.5], [7.0, 8.0]]);
/// assert_eq!(pool(x.view(), &batch, Pooling::Max)?, array![[3.0, 5.0], [7.0, 8.0]]);
/// # Ok::<(), bochner_graph::Error>(())
/// ```
pub fn pool<T: Real>(
    x: ArrayView2<T>,
    batch: &Batch,
    pooling: Pooling,
) -> Result<Array2<T>, Error> {
    check("x", batch.graph().targets(), x)?;
    Ok(PoolingOperation::new(batch, pooling).pooled(x))
}

/// The vector-Jacobian product of [`pool`].
///
/// # Shapes
/// `x: [N, F]` and `cotangent: [B, F]` to `[N, F]`.
///
/// # Errors
/// The errors of [`pool`], and [`Error::Argument`] for a cotangent of another shape.
pub fn pool_vjp<T: Real>(
    x: ArrayView2<T>,
    batch: &Batch,
    pooling: Pooling,
    cotangent: ArrayView2<T>,
) -> Result<Array2<T>, Error> {
    check("x", batch.graph().targets(), x)?;
    let expected = [batch.len(), x.ncols()];
    argument::shape("cotangent", &expected, cotangent.shape())?;
    Ok(PoolingOperation::new(batch, pooling).along_nodes(x, cotangent))
}

/// [`pool`] of a tensor, as one operation on the tape.
///
/// # Errors
/// [`bochner_nn::Error::Argument`] for another number of rows or without graphs; [`bochner_nn::Error::Operation`] for NaN
/// or infinity.
#[cfg(feature = "dfdx")]
pub fn pool_nodes<E: Element, T: Tape<E, Cpu>>(
    x: Tensor<(usize, usize), E, Cpu, T>,
    batch: &Batch,
    pooling: Pooling,
) -> Result<Tensor<(usize, usize), E, Cpu, T>, bochner_nn::Error> {
    let shape = (batch.len(), x.shape().1);
    let inputs = TapeInputs::<E, T>::new().with(x)?;
    record_one(PoolingOperation::new(batch, pooling), inputs, shape)
}

/// [`pool`] as an operation, without a tape or a framework: its input is `x`.
#[derive(Clone, Debug)]
pub struct PoolingOperation {
    /// The rows of each graph.
    parts: Vec<Range<usize>>,
    rows: usize,
    pooling: Pooling,
}

impl PoolingOperation {
    /// The pooling of the targets of a batch.
    pub fn new(batch: &Batch, pooling: Pooling) -> Self {
        Self {
            parts: (0..batch.len()).map(|b| batch.targets(b)).collect(),
            rows: batch.graph().targets(),
            pooling,
        }
    }

    fn pooled<T: Real>(&self, x: ArrayView2<T>) -> Array2<T> {
        let mut y = Array2::zeros((self.parts.len(), x.ncols()));
        let mut sum = RowSum::new(x.ncols());
        for (part, mut y) in self.parts.iter().zip(y.rows_mut()) {
            if self.pooling == Pooling::Max {
                for (column, y) in y.iter_mut().enumerate() {
                    let row = largest(x, part, column);
                    *y = row.map_or(T::zero(), |row| x[[row, column]]);
                }
                continue;
            }
            let share: T = self.share(part);
            for row in part.clone() {
                let terms = sum.next().iter_mut().zip(x.row(row));
                terms.for_each(|(sum, &x)| *sum += x * share);
            }
            sum.add_to(y.as_slice_mut().expect("allocated in row-major order"));
            y.mapv_inplace(bounded);
        }
        y
    }

    fn along_nodes<T: Real>(&self, x: ArrayView2<T>, cotangent: ArrayView2<T>) -> Array2<T> {
        let mut gradient = Array2::zeros(x.dim());
        for (part, g) in self.parts.iter().zip(cotangent.rows()) {
            if self.pooling == Pooling::Max {
                for (column, &g) in g.iter().enumerate() {
                    if let Some(row) = largest(x, part, column) {
                        gradient[[row, column]] = g;
                    }
                }
                continue;
            }
            let share = self.share::<T>(part);
            for row in part.clone() {
                gradient.row_mut(row).assign(&g.mapv(|g| g * share));
            }
        }
        gradient
    }

    /// The factor of a sum over the nodes of a graph.
    fn share<T: Real>(&self, part: &Range<usize>) -> T {
        match self.pooling {
            Pooling::Mean => T::of(1.0 / part.len().max(1) as f64),
            Pooling::Sum | Pooling::Max => T::one(),
        }
    }
}

/// The first row of those with the largest number of a column; `None` without rows.
fn largest<T: Real>(x: ArrayView2<T>, part: &Range<usize>, column: usize) -> Option<usize> {
    part.clone().reduce(|best, row| {
        if x[[row, column]] > x[[best, column]] {
            row
        } else {
            best
        }
    })
}

fn check<T: Real>(name: &'static str, rows: usize, x: ArrayView2<T>) -> Result<(), Error> {
    argument::shape(name, &[rows, x.ncols()], x.shape())?;
    let standard = x.as_standard_layout();
    let elements = standard.as_slice().expect("brought to row-major order");
    finite(name, x.shape(), elements)
}

impl<T: Real> Operation<T> for PoolingOperation {
    type Saved = ();

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        let [x] = given(inputs)?;
        let columns = x.get(1).copied().unwrap_or(0);
        argument::shape("x", &[self.rows, columns], x)?;
        Ok(vec![vec![self.parts.len(), columns]])
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<(), BoxError> {
        let x = matrix(&inputs[0]);
        check("x", self.rows, x)?;
        let [slot] = slots(outputs);
        slot.put_array(self.pooled(x));
        Ok(())
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        (): &(),
        cotangents: &[ArrayViewD<'_, T>],
        gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        let [slot] = slots(gradients);
        if let Some(slot) = slot {
            slot.put_array(self.along_nodes(matrix(&inputs[0]), matrix(&cotangents[0])));
        }
        Ok(())
    }
}
