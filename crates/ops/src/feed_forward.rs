//! Two linear maps with an activation and dropout between them.

use crate::affine::{PackedAffine, affine, affine_shape, affine_vjp};
use crate::operation::{BoxError, Operation, Slot, filled, given, slices, slots};
use crate::rows::{PIECE, for_each_piece};
use crate::{Activation, activation_vjp};
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::{ArgumentError, Buffers, DropoutMask, Mat, Real};
use ndarray::ArrayViewD;

/// Two linear maps with an activation and dropout between them, over the last axis: an operation on `x` and
/// the weight and bias of each map.
///
/// $$ y = \phi\bigl(W_2 \mathrm{dropout}(\psi(W_1 x + b_1)) + b_2\bigr) $$
///
/// * $W_1, b_1$: from `I` to `H`
/// * $W_2, b_2$: from `H` to `O`
/// * $\psi$: `hidden`
/// * $\phi$: `activation`
///
/// # Numerics
/// The forward pass keeps the hidden layer, and the derivative of $\phi$ where it is not 1. It keeps the derivative of
/// $\psi$ too, unless $\psi$ is the rectifier: the backward pass then finds it from the hidden layer.
#[derive(Clone, Copy, Debug)]
pub struct FeedForward {
    /// The mask that drops elements of the hidden layer, if one does.
    pub mask: Option<DropoutMask>,
    /// The function that follows the first map.
    pub hidden: Activation,
    /// The function that follows the second map.
    pub activation: Activation,
}

/// The hidden layer behind activation and dropout, which the backward pass of [`FeedForward`] reads again.
#[derive(Clone, Debug)]
pub struct HiddenLayer<T> {
    hidden: Vec<T>,
    /// The derivative of the hidden activation; `None` for the rectifier.
    hidden_slopes: Option<Vec<T>>,
    slopes: Option<Vec<T>>,
}

impl FeedForward {
    /// Drops from a piece of the hidden layer.
    fn drop_from<T: Real>(&self, start: usize, piece: &mut [T]) {
        if let Some(mask) = &self.mask {
            mask.scale(start as u64, piece);
        }
    }

    /// Turns the first map's output into the hidden layer, and returns the activation's derivative unless it is 1.
    fn activate<T: Real>(&self, hidden: &mut [T]) -> Option<Vec<T>> {
        let slopes = self.hidden.apply_with_slopes(hidden);
        let work = hidden.len() * self.mask.map_or(0, |_| DRAW);
        for_each_piece(hidden.chunks_mut(PIECE).enumerate(), work, |(i, piece)| {
            self.drop_from(i * PIECE, piece);
        });
        slopes
    }
}

/// A [`FeedForward`] without dropout whose weights are packed once for many calls: for inference.
#[derive(Clone, Debug)]
pub struct PackedFeedForward<T> {
    maps: [PackedAffine<T>; 2],
    activations: [Activation; 2],
}

impl<T: Real> PackedFeedForward<T> {
    /// The maps and activations of a feed-forward part.
    pub fn new(maps: [PackedAffine<T>; 2], of: &FeedForward) -> Self {
        let activations = [of.hidden, of.activation];
        Self { maps, activations }
    }

    /// Writes the outputs for the rows of `x` to `y`, with the bits of [`FeedForward`]; the hidden layer lies in the
    /// buffers. Rectifiers and the identity allocate nothing else.
    ///
    /// # Panics
    /// If the lengths do not fit.
    pub fn apply(&self, x: &[T], buffers: &Buffers<T>, y: &mut [T]) {
        let [first, second] = &self.maps;
        let [inner, outer] = self.activations;
        let rows = y.len() / second.outputs();
        let mut hidden = buffers.any(rows * first.outputs());
        first.apply(x, buffers, &mut hidden, |piece| inner.apply(piece));
        second.apply(&hidden, buffers, y, |piece| outer.apply(piece));
    }
}

/// Multiplications that take as long as drawing one element of a mask.
const DRAW: usize = 8;

impl<T: Real> Operation<T> for FeedForward {
    type Saved = HiddenLayer<T>;

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        self.hidden.validate()?;
        self.activation.validate()?;
        let [x, first, first_bias, second, second_bias] = given(inputs)?;
        let names = ["first weight", "first bias"];
        let hidden = affine_shape(names, x, first, first_bias)?;
        let names = ["second weight", "second bias"];
        Ok(vec![affine_shape(names, &hidden, second, second_bias)?])
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<Self::Saved, BoxError> {
        let ([x, first, first_bias, second, second_bias], [y]) = (slices(inputs), slots(outputs));
        let rows = y.len() / second_bias.len();
        let is_rectifier = self.hidden == Activation::Relu;
        let [mut hidden] = filled([rows * first_bias.len()], |[hidden]| {
            affine(x, first, first_bias, hidden, |start, piece| {
                if is_rectifier {
                    Activation::Relu.apply(piece);
                    self.drop_from(start, piece);
                }
            });
        });
        let hidden_slopes = match is_rectifier {
            true => None,
            false => self.activate(&mut hidden),
        };
        let slopes = if self.activation == Activation::Identity {
            affine(&hidden, second, second_bias, y, |_, _| ());
            None
        } else {
            let [mut values] = filled([y.len()], |[y]| {
                affine(&hidden, second, second_bias, y, |_, _| ())
            });
            let slopes = self.activation.apply_with_slopes(&mut values);
            y.put(values);
            slopes
        };
        Ok(HiddenLayer {
            hidden,
            hidden_slopes,
            slopes,
        })
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        saved: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
        gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        let ([x, first, first_bias, second, second_bias], [dy]) =
            (slices(inputs), slices(cotangents));
        let [dx, dfirst, dfirst_bias, dsecond, dsecond_bias] = slots(gradients);
        let hidden = &saved.hidden;
        let through = saved.slopes.as_ref().map(|slopes| {
            let [through] = filled([dy.len()], |[through]| activation_vjp(slopes, dy, through));
            through
        });
        let dy = through.as_deref().unwrap_or(dy);
        affine_vjp(
            hidden,
            second,
            dy,
            second_bias.len(),
            [None, dsecond, dsecond_bias],
        );
        let below = [dx, dfirst, dfirst_bias];
        if below.iter().all(Option::is_none) {
            return Ok(());
        }
        // A hidden value is zero if it was dropped or cut off; all others have one factor.
        let kept = T::of(self.mask.map_or(1.0, |mask| mask.kept_factor()));
        let (width, rows) = (first_bias.len(), dy.len() / second_bias.len());
        let (dy, second) = (
            Mat::new(dy, rows, second_bias.len()),
            Mat::new(second, second_bias.len(), width),
        );
        let [dhidden] = filled([hidden.len()], |[dhidden]| {
            dhidden.by_blocks(rows, hidden.len() * second_bias.len(), |range, piece| {
                let own = range.start * width..range.end * width;
                let d = piece.product(dy.row_range(range), second);
                if self.hidden == Activation::Relu {
                    let hidden = &hidden[own];
                    instructions::run(RectifierVjp { d, hidden, kept });
                    return;
                }
                self.drop_from(own.start, d);
                if let Some(slopes) = &saved.hidden_slopes {
                    d.iter_mut().zip(&slopes[own]).for_each(|(d, &s)| *d *= s);
                }
            });
        });
        affine_vjp(x, first, &dhidden, width, below);
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
