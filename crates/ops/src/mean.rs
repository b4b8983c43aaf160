//! The mean of a sequence.

use crate::operation::{BoxError, Operation, Slot, given, slices, slots};
use crate::rows::add;
use bochner_numerics::{ArgumentError, Real, argument};
use ndarray::ArrayViewD;

/// The mean of each sequence over its time: an operation on `x`.
///
/// $$ y_b = \frac{1}{n_b} \sum_{t < n_b} x_{bt} $$
///
/// * $x$: `[B, T, N]`
/// * $n$: `lengths`, `B` numbers from 0 to `T`; without them `T`
/// * $y$: `[B, N]`; the mean of a sequence of length 0 is zero, whatever it holds
///
/// # Numerics
/// Positions behind a sequence's length are not read: they may be NaN.
#[derive(Clone, Debug)]
pub struct MeanOverTime {
    /// The length of each sequence; `None` if all are as long as the array.
    pub lengths: Option<Vec<usize>>,
}

impl MeanOverTime {
    /// The length of a sequence.
    fn length(&self, sequence: usize, time: usize) -> usize {
        self.lengths
            .as_ref()
            .map_or(time, |lengths| lengths[sequence])
    }
}

/// Refuses lengths of sequences unless there are `batch` of them, each at most `time`.
///
/// # Errors
/// [`ArgumentError::Shape`] or [`ArgumentError::OutOfRange`].
pub fn check_lengths(lengths: &[usize], batch: usize, time: usize) -> Result<(), ArgumentError> {
    argument::shape("lengths", &[batch], &[lengths.len()])?;
    match lengths.iter().position(|&length| length > time) {
        None => Ok(()),
        Some(b) => {
            let (name, length) = (format!("lengths[{b}]"), lengths[b] as f64);
            let allowed = format!("at most {time}, the number of positions");
            Err(argument::out_of_range(name, length, allowed))
        }
    }
}

impl<T: Real> Operation<T> for MeanOverTime {
    type Saved = ();

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        let [x] = given(inputs)?;
        let &[batch, time, width] = x else {
            let (name, expected, got) = ("axes of x".into(), vec![3], vec![x.len()]);
            return Err(ArgumentError::Shape {
                name,
                expected,
                got,
            });
        };
        if let Some(lengths) = &self.lengths {
            check_lengths(lengths, batch, time)?;
        }
        Ok(vec![vec![batch, width]])
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<(), BoxError> {
        let ([x], [mean]) = (slices(inputs), slots(outputs));
        let [_, time, width] = [0, 1, 2].map(|axis| inputs[0].shape()[axis]);
        let mut y = vec![T::zero(); mean.len()];
        for (b, (y, x)) in y
            .chunks_exact_mut(width)
            .zip(x.chunks_exact(time * width))
            .enumerate()
        {
            let length = self.length(b, time);
            add(y, &x[..length * width]);
            let share = T::of(1.0 / length.max(1) as f64);
            y.iter_mut().for_each(|y| *y *= share);
        }
        mean.put(y);
        Ok(())
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        _: &(),
        cotangents: &[ArrayViewD<'_, T>],
        gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        let ([dy], [dx]) = (slices(cotangents), slots(gradients));
        let Some(dx) = dx else { return Ok(()) };
        let [batch, time, width] = [0, 1, 2].map(|axis| inputs[0].shape()[axis]);
        dx.by_blocks(batch * time, inputs[0].len(), |range, piece| {
            piece.write(|dx| {
                for (i, row) in range.zip(dx.zeros().chunks_exact_mut(width)) {
                    let (b, n) = (i / time, self.length(i / time, time));
                    if i % time < n {
                        let (share, dy) = (T::of(1.0 / n as f64), &dy[b * width..][..width]);
                        let pairs = row.iter_mut().zip(dy);
                        pairs.for_each(|(dx, &dy)| *dx = dy * share);
                    }
                }
            });
        });
        Ok(())
    }
}
