//! Dropout.

use crate::Mode;
use crate::operation::{BoxError, Operation, Slot, given, slices, slots};
use bochner_numerics::{ArgumentError, DropoutMask, Real, argument};
use ndarray::ArrayViewD;

/// The mask of a pass; `None` in evaluation and at the rate 0.
///
/// # Errors
/// [`ArgumentError::OutOfRange`] unless `0 <= rate < 1`, in evaluation too.
pub fn dropout_mask(rate: f64, mode: Mode) -> Result<Option<DropoutMask>, ArgumentError> {
    argument::rate("dropout", rate)?;
    Ok(match mode {
        Mode::Training(seed) if rate > 0.0 => Some(DropoutMask::new(rate, seed)?),
        _ => None,
    })
}

/// Dropout with a given mask, an operation on one array.
#[derive(Clone, Copy, Debug)]
pub struct Dropout(pub DropoutMask);

impl Dropout {
    fn scale<T: Real>(&self, x: &[T], y: Slot<'_, T>) {
        let mut values = x.to_vec();
        self.0.scale(0, &mut values);
        y.put(values);
    }
}

impl<T: Real> Operation<T> for Dropout {
    type Saved = ();

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        let [x] = given(inputs)?;
        Ok(vec![x.to_vec()])
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<(), BoxError> {
        let ([x], [y]) = (slices(inputs), slots(outputs));
        self.scale(x, y);
        Ok(())
    }

    fn backward(
        &self,
        _: &[ArrayViewD<'_, T>],
        _: &(),
        cotangents: &[ArrayViewD<'_, T>],
        gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        let ([dy], [dx]) = (slices(cotangents), slots(gradients));
        if let Some(dx) = dx {
            self.scale(dy, dx);
        }
        Ok(())
    }
}
