//! Two linear maps with a rectifier and dropout between them.

use crate::affine::{affine, affine_shape, affine_vjp};
use crate::operation::{BoxError, Operation, Slot, filled, given, slices, slots};
use crate::{Activation, activation_vjp};
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::{ArgumentError, DropoutMask, Mat, Real};
use ndarray::ArrayViewD;

/// Two linear maps with a rectifier and dropout between them, over the last axis: an operation on `x` and
/// the weight and bias of each map.
///
/// $$ y = \phi\bigl(W_2\, \mathrm{dropout}(\max(W_1 x + b_1, 0)) + b_2\bigr) $$
///
/// * $W_1, b_1$: from `I` to `H`
/// * $W_2, b_2$: from `H` to `O`
/// * $\phi$: `activation`
///
/// # Numerics
/// The backward pass keeps the hidden layer, and the derivative of $\phi$ where it is not 1.
#[derive(Clone, Copy, Debug)]
pub struct TwoLayers {
    /// The mask that drops elements of the hidden layer, if one does.
    pub mask: Option<DropoutMask>,
    /// The function that follows the second map.
    pub activation: Activation,
}

/// The hidden layer, which the backward pass of [`TwoLayers`] reads again.
#[derive(Clone, Debug)]
pub struct HiddenLayer<T> {
    hidden: Vec<T>,
    slopes: Option<Vec<T>>,
}

impl TwoLayers {
    /// Rectifies a piece of the hidden layer and drops from it.
    fn finish_hidden<T: Real>(&self, start: usize, piece: &mut [T]) {
        Activation::Relu.apply(piece);
        if let Some(mask) = &self.mask {
            mask.scale(start as u64, piece);
        }
    }
}

impl<T: Real> Operation<T> for TwoLayers {
    type Saved = HiddenLayer<T>;

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        self.activation.validate()?;
        let [x, w1, b1, w2, b2] = given(inputs)?;
        let hidden = affine_shape(x, w1, b1)?;
        Ok(vec![affine_shape(&hidden, w2, b2)?])
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<Self::Saved, BoxError> {
        let ([x, w1, b1, w2, b2], [y]) = (slices(inputs), slots(outputs));
        let rows = y.len() / b2.len();
        let [hidden] = filled([rows * b1.len()], |[hidden]| {
            affine(x, w1, b1, hidden, |start, piece| {
                self.finish_hidden(start, piece);
            });
        });
        let slopes = if self.activation == Activation::Identity {
            affine(&hidden, w2, b2, y, |_, _| ());
            None
        } else {
            let [mut values] = filled([y.len()], |[y]| affine(&hidden, w2, b2, y, |_, _| ()));
            let slopes = self.activation.apply_with_slopes(&mut values);
            y.put(values);
            slopes
        };
        Ok(HiddenLayer { hidden, slopes })
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        HiddenLayer { hidden, slopes }: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
        gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        let ([x, w1, b1, w2, b2], [dy]) = (slices(inputs), slices(cotangents));
        let [dx, dw1, db1, dw2, db2] = slots(gradients);
        let through = slopes.as_ref().map(|slopes| {
            let [through] = filled([dy.len()], |[through]| activation_vjp(slopes, dy, through));
            through
        });
        let dy = through.as_deref().unwrap_or(dy);
        affine_vjp(hidden, w2, dy, b2.len(), [None, dw2, db2]);
        let first = [dx, dw1, db1];
        if first.iter().all(Option::is_none) {
            return Ok(());
        }
        // A hidden value is zero if it was dropped or cut off; all others have one factor.
        let kept = T::of(self.mask.map_or(1.0, |mask| mask.kept_factor()));
        let (width, rows) = (b1.len(), dy.len() / b2.len());
        let (dy, w2) = (Mat::new(dy, rows, b2.len()), Mat::new(w2, b2.len(), width));
        let [dhidden] = filled([hidden.len()], |[dhidden]| {
            dhidden.by_blocks(rows, hidden.len() * b2.len(), |range, piece| {
                let hidden = &hidden[range.start * width..range.end * width];
                let d = piece.product(dy.row_range(range), w2);
                instructions::run(RectifierVjp { d, hidden, kept });
            });
        });
        affine_vjp(x, w1, &dhidden, width, first);
        Ok(())
    }
}

/// Turns the gradient behind rectifier and dropout into the gradient before them.
struct RectifierVjp<'a, T> {
    d: &'a mut [T],
    hidden: &'a [T],
    kept: T,
}

impl<T: Real> Task for RectifierVjp<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        for (d, &h) in self.d.iter_mut().zip(self.hidden) {
            *d = if h > T::zero() {
                *d * self.kept
            } else {
                T::zero()
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::gradients_are_right;
    use bochner_numerics::Seed;

    #[test]
    fn gradients_agree_with_finite_differences() {
        let sizes: [&[usize]; 5] = [&[3, 2, 4], &[6, 4], &[6], &[5, 6], &[5]];
        for mask in [None, DropoutMask::new(0.4, Seed::new(3)).ok()] {
            for activation in [Activation::Identity, Activation::Relu, Activation::Elu] {
                gradients_are_right(TwoLayers { mask, activation }, &sizes);
            }
        }
    }
}
