//! The mean of a sequence.

use crate::rows::{add, by_blocks};
use crate::{BoxError, Element, Error, Inputs, Operation, record_one};
use bochner_numerics::Real;
use dfdx::shapes::{Dim, HasShape};
use dfdx::tensor::{Cpu, Tape, Tensor};
use ndarray::{ArrayD, ArrayViewD, IxDyn};

/// The mean of each sequence over its time; one operation on the tape.
///
/// $$ y_b = \frac{1}{n_b} \sum_{t < n_b} x_{bt} $$
///
/// * $x$: `[B, T, N]`
/// * $n$: `lengths`, `B` numbers from 1 to `T`; without them `T`
/// * $y$: `[B, N]`
///
/// # Errors
/// [`Error::ShapeMismatch`] unless there is one length a sequence, [`Error::OutOfRange`] for a
/// length of 0 or above `T`, [`Error::Empty`] without elements.
///
/// # Numerics
/// What lies behind a sequence's length is not read: it may be NaN.
pub fn mean_over_time<B: Dim, Q: Dim, N: Dim, E: Element, T: Tape<E, Cpu>>(
    x: Tensor<(B, Q, N), E, Cpu, T>,
    lengths: Option<&[usize]>,
) -> Result<Tensor<(B, N), E, Cpu, T>, Error> {
    let (batch, time, width) = *x.shape();
    let lengths = lengths.map_or_else(|| vec![time.size(); batch.size()], <[usize]>::to_vec);
    if lengths.len() != batch.size() {
        return Err(Error::ShapeMismatch {
            what: "the lengths",
            expected: vec![batch.size()],
            got: vec![lengths.len()],
        });
    }
    if let Some(&length) = lengths.iter().find(|&&n| n == 0 || n > time.size()) {
        return Err(Error::OutOfRange {
            what: "a sequence's length",
            got: length as f64,
            requirement: "at least 1 and at most the time",
        });
    }
    let inputs = Inputs::<E, T>::new().with(x)?;
    record_one(Mean(lengths), inputs, (batch, width))
}

/// [`mean_over_time`] as an operation on `x`.
struct Mean(Vec<usize>);

impl Mean {
    /// The rows of each sequence that count.
    fn sequences<'a, T>(&'a self, x: &'a [T], width: usize) -> impl Iterator<Item = &'a [T]> {
        let sequences = x.chunks_exact(x.len() / self.0.len());
        sequences.zip(&self.0).map(move |(x, n)| &x[..n * width])
    }
}

impl<T: Real> Operation<T> for Mean {
    type Saved = ();

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
    ) -> Result<(Vec<ArrayD<T>>, Self::Saved), BoxError> {
        let [x] = super::slices(inputs);
        let (batch, width) = (self.0.len(), inputs[0].shape()[2]);
        let mut y = vec![T::zero(); batch * width];
        for (y, x) in y.chunks_exact_mut(width).zip(self.sequences(x, width)) {
            add(y, x);
            let share = T::of(width as f64 / x.len() as f64);
            y.iter_mut().for_each(|y| *y *= share);
        }
        let y = ArrayD::from_shape_vec(IxDyn(&[batch, width]), y)?;
        Ok((vec![y], ()))
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        _: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
    ) -> Result<Vec<Option<ArrayD<T>>>, BoxError> {
        let [dy] = super::slices(cotangents);
        let width = inputs[0].shape()[2];
        let [batch, time] = [0, 1].map(|axis| inputs[0].shape()[axis]);
        let [dx] = by_blocks(batch * time, [width], inputs[0].len(), |range, [dx]| {
            for (i, row) in range.zip(dx.zeros().chunks_exact_mut(width)) {
                let (b, n) = (i / time, self.0[i / time]);
                if i % time < n {
                    let (share, dy) = (T::of(1.0 / n as f64), &dy[b * width..][..width]);
                    let pairs = row.iter_mut().zip(dy);
                    pairs.for_each(|(dx, &dy)| *dx = dy * share);
                }
            }
        });
        super::gradients(inputs, [dx])
    }
}
