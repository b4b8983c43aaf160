//! Functions of each element that follow a linear map.

use crate::operation::{BoxError, Operation, Slot, given, slices, slots};
use crate::rows::{PIECE, for_each_piece};
use bochner_numerics::elementary::{exp_in_place, normal_cdf_in_place};
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::memory::written_by;
use bochner_numerics::{ArgumentError, Real, argument};
use ndarray::ArrayViewD;
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// A function of each element that follows a layer; the identity by default.
///
/// It is an [`Operation`] on one array, too.
///
/// # Numerics
/// NaN stays NaN, so that it is noticed. Below zero the exponential linear unit has an absolute error of one
/// rounding error of 1. The Gaussian error linear unit has a relative error of a few ulps, in its lower tail too.
///
/// # Reference
/// Clevert, Unterthiner, Hochreiter, *Fast and Accurate Deep Network Learning by Exponential Linear Units*,
/// 2016; Hendrycks, Gimpel, *Gaussian Error Linear Units*, 2016.
///
/// ```
/// use bochner_ops::Activation;
///
/// let mut x = [-1.0_f64, 2.0];
/// let slopes = Activation::Elu.apply_with_slopes(&mut x).unwrap();
/// assert_eq!(x, [(-1.0_f64).exp() - 1.0, 2.0]);
/// assert_eq!(slopes, [(-1.0_f64).exp(), 1.0]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, remote = "Self")]
#[non_exhaustive]
pub enum Activation {
    /// $x$ itself.
    #[default]
    Identity,
    /// The rectifier, $\max(x, 0)$.
    Relu,
    /// The leaky rectifier: $x$ above zero, `slope` times $x$ below.
    LeakyRelu {
        /// The slope below zero, finite.
        slope: f64,
    },
    /// The exponential linear unit: $x$ above zero, $e^x - 1$ below.
    Elu,
    /// The Gaussian error linear unit, $x \Phi(x)$ with the normal distribution function.
    Gelu,
    /// The Gaussian error linear unit with the hyperbolic tangent in place of the distribution function,
    /// $\tfrac x 2 (1 + \tanh(\sqrt{2 / \pi} (x + 0.044715 x^3)))$: `approximate="tanh"` in PyTorch.
    GeluTanh,
}

bochner_numerics::checked_when_read!(Activation);

impl Activation {
    /// `Ok` if the activation's own number is in its range.
    ///
    /// # Errors
    /// [`ArgumentError::OutOfRange`] for a slope that is not finite in single precision, whichever type the
    /// elements have.
    pub fn validate(self) -> Result<(), ArgumentError> {
        match self {
            Self::LeakyRelu { slope } => {
                let allowed = "finite, in single precision too";
                argument::in_range((slope as f32).is_finite(), "slope", slope, allowed)
            }
            Self::Identity | Self::Relu | Self::Elu | Self::Gelu | Self::GeluTanh => Ok(()),
        }
    }

    /// Replaces each element by its value.
    pub fn apply<T: Real>(self, x: &mut [T]) {
        if self == Self::Identity {
            return;
        }
        let work = x.len() * self.work();
        for_each_piece(x.chunks_mut(PIECE), work, |y| match self {
            Self::Elu => apply_elu(y, &mut y.to_vec()),
            Self::Gelu => apply_gelu(y, &mut y.to_vec()),
            Self::GeluTanh => apply_gelu_tanh(y, &mut y.to_vec()),
            _ => instructions::run(Rectify {
                y,
                slope: self.slope(),
            }),
        });
    }

    /// Replaces each element by its value and returns the derivative at each; `None` for the identity, whose
    /// derivative is 1.
    pub fn apply_with_slopes<T: Real>(self, x: &mut [T]) -> Option<Vec<T>> {
        if self == Self::Identity {
            return None;
        }
        let work = x.len() * self.work();
        let [slopes] = written_by([x.len()], |[slopes]| {
            let pieces = x.chunks_mut(PIECE).zip(slopes.chunks(PIECE));
            for_each_piece(pieces, work, |(y, slopes)| {
                let slopes = slopes.copy_of(y);
                match self {
                    Self::Elu => apply_elu(y, slopes),
                    Self::Gelu => apply_gelu(y, slopes),
                    Self::GeluTanh => apply_gelu_tanh(y, slopes),
                    _ => {
                        let slope = self.slope();
                        instructions::run(Rectify { y, slope });
                        instructions::run(RectifierSlopes { x: slopes, slope });
                    }
                }
            });
        });
        Some(slopes)
    }

    /// The slope below zero of a rectifier.
    fn slope<T: Real>(self) -> T {
        match self {
            Self::LeakyRelu { slope } => T::of(slope),
            _ => T::zero(),
        }
    }

    /// The cost of one element, as a number of multiplications.
    fn work(self) -> usize {
        match self {
            Self::Elu | Self::GeluTanh => 16,
            Self::Gelu => 64,
            _ => 2,
        }
    }
}

/// Writes `slopes`, as [`Activation::apply_with_slopes`] gives them, times the cotangent `dy` of the values.
///
/// # Panics
/// Unless all three have one length.
pub fn activation_vjp<T: Real>(slopes: &[T], dy: &[T], dx: Slot<'_, T>) {
    let lengths = [slopes.len(), dx.len()];
    assert_eq!(lengths, [dy.len(); 2], "a derivative for each element");
    // Reading and writing, not arithmetic, takes the time.
    dx.by_pieces(8 * dy.len(), |range, piece| {
        piece.write(|dx| {
            let dx = dx.copy_of(&dy[range.clone()]).iter_mut();
            dx.zip(&slopes[range]).for_each(|(dx, &slope)| *dx *= slope);
        });
    });
}

/// The rectifier with a slope below zero, in place; NaN is let through.
struct Rectify<'a, T> {
    y: &'a mut [T],
    slope: T,
}

impl<T: Real> Task for Rectify<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        for y in self.y {
            let below = match self.slope == T::zero() {
                true => T::zero(),
                false => *y * self.slope,
            };
            *y = if *y < T::zero() { below } else { *y };
        }
    }
}

/// The derivative of the rectifier in the place of its argument.
struct RectifierSlopes<'a, T> {
    x: &'a mut [T],
    slope: T,
}

impl<T: Real> Task for RectifierSlopes<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        for x in self.x {
            *x = if *x > T::zero() { T::one() } else { self.slope };
        }
    }
}

/// Turns $x$, which stands in both slices, into $y$ and its derivative.
fn apply_elu<T: Real>(y: &mut [T], slopes: &mut [T]) {
    instructions::run(Negative(slopes));
    exp_in_place(slopes);
    instructions::run(Finish { y, slopes });
}

/// Cuts positive numbers to zero; NaN stays NaN.
struct Negative<'a, T>(&'a mut [T]);

impl<T: Real> Task for Negative<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        for x in self.0 {
            *x = if *x > T::zero() { T::zero() } else { *x };
        }
    }
}

/// Writes $x$ where it is positive, and the exponential less one elsewhere.
struct Finish<'a, T> {
    y: &'a mut [T],
    slopes: &'a [T],
}

impl<T: Real> Task for Finish<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        for (y, &slope) in self.y.iter_mut().zip(self.slopes) {
            *y = if *y > T::zero() { *y } else { slope - T::one() };
        }
    }
}

/// Turns $x$, which stands in both slices, into $x \Phi(x)$ and its derivative $\Phi(x) + x \varphi(x)$.
fn apply_gelu<T: Real>(y: &mut [T], slopes: &mut [T]) {
    let mut density = y.to_vec();
    instructions::run(Exponent(&mut density));
    exp_in_place(&mut density);
    normal_cdf_in_place(slopes);
    instructions::run(FinishGelu { y, slopes, density });
}

/// The exponent of the normal density, $-x^2 / 2$.
struct Exponent<'a, T>(&'a mut [T]);

impl<T: Real> Task for Exponent<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        for x in self.0 {
            *x = -*x * *x * T::of(0.5);
        }
    }
}

/// Takes $x$, $\Phi(x)$ and the density times $\sqrt{2 \pi}$ to the value and the derivative.
struct FinishGelu<'a, T> {
    y: &'a mut [T],
    slopes: &'a mut [T],
    density: Vec<T>,
}

impl<T: Real> Task for FinishGelu<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let root = T::of(TAU.sqrt().recip());
        let slopes = self.slopes.iter_mut();
        for ((y, slope), &density) in self.y.iter_mut().zip(slopes).zip(&self.density) {
            let (x, distribution) = (*y, *slope);
            *y = times(x, distribution);
            *slope = distribution + times(x, density * root);
        }
    }
}

/// The product of $x$ and a factor. A factor of exactly 0 stands for a number below the type's range, which an infinite
/// $x$ must not turn into NaN.
#[inline(always)]
fn times<T: Real>(x: T, factor: T) -> T {
    match factor == T::zero() {
        true => T::zero(),
        false => x * factor,
    }
}

/// Turns $x$, which stands in both slices, into $x \sigma(z)$ and its derivative, where $z = 2 \sqrt{2 / \pi}
/// (x + 0.044715 x^3)$ and $\sigma$ is the logistic function: $\sigma(2 u) = (1 + \tanh u) / 2$.
fn apply_gelu_tanh<T: Real>(y: &mut [T], slopes: &mut [T]) {
    instructions::run(LogisticExponent(slopes));
    exp_in_place(slopes);
    instructions::run(FinishGeluTanh { y, slopes });
}

const CUBIC: f64 = 0.044715;
/// The factor $2 \sqrt{2 / \pi}$.
const DOUBLED: f64 = std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::SQRT_2;

/// Cuts $x$ to where its cube is finite. Beyond, the logistic function is exactly 0 or 1. NaN stays NaN.
#[inline(always)]
fn within_tails<T: Real>(x: T) -> T {
    let end = T::of(30.0);
    if x > end {
        end
    } else if x < -end {
        -end
    } else {
        x
    }
}

/// The exponent of the logistic function, $-z$.
struct LogisticExponent<'a, T>(&'a mut [T]);

impl<T: Real> Task for LogisticExponent<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let [factor, cubic] = [-DOUBLED, CUBIC].map(T::of);
        for x in self.0 {
            let cut = within_tails(*x);
            *x = factor * cut * (T::one() + cubic * cut * cut);
        }
    }
}

/// Takes $x$ and $e^{-z}$ to the value and the derivative.
struct FinishGeluTanh<'a, T> {
    y: &'a mut [T],
    slopes: &'a mut [T],
}

impl<T: Real> Task for FinishGeluTanh<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let [factor, cubic] = [DOUBLED, 3.0 * CUBIC].map(T::of);
        for (y, slope) in self.y.iter_mut().zip(self.slopes) {
            let (x, logistic) = (*y, (T::one() + *slope).recip());
            let cut = within_tails(x);
            let of_z = factor * (T::one() + cubic * cut * cut);
            *y = times(x, logistic);
            *slope = logistic + times(x, logistic * (T::one() - logistic) * of_z);
        }
    }
}

/// An activation as an operation on one array.
impl<T: Real> Operation<T> for Activation {
    /// The derivative at each element.
    type Saved = Option<Vec<T>>;

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        self.validate()?;
        let [x] = given(inputs)?;
        Ok(vec![x.to_vec()])
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<Self::Saved, BoxError> {
        let ([x], [y]) = (slices(inputs), slots(outputs));
        let mut values = x.to_vec();
        let slopes = self.apply_with_slopes(&mut values);
        y.put(values);
        Ok(slopes)
    }

    fn backward(
        &self,
        _: &[ArrayViewD<'_, T>],
        slopes: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
        gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        let ([dy], [dx]) = (slices(cotangents), slots(gradients));
        match (dx, slopes) {
            (Some(dx), Some(slopes)) => activation_vjp(slopes, dy, dx),
            (Some(dx), None) => dx.put(dy.to_vec()),
            (None, _) => {}
        }
        Ok(())
    }
}
