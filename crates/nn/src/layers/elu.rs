//! The exponential linear unit.

use super::slices;
use crate::rows::for_each_piece;
use crate::{BoxError, Element, Error, Inputs, Operation, record_one};
use bochner_numerics::Real;
use bochner_numerics::elementary::exp_in_place;
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::memory::written_by;
use dfdx::shapes::{HasShape, Shape};
use dfdx::tensor::{Cpu, Tape, Tensor};
use ndarray::{ArrayD, ArrayViewD};

/// The exponential linear unit of each element; one operation on the tape.
///
/// $$ y = \begin{cases} x & x > 0 \\ e^x - 1 & x \le 0 \end{cases} $$
///
/// # Errors
/// [`Error::Empty`] without elements.
///
/// # Numerics
/// Below zero the absolute error is a rounding error of one.
///
/// # Reference
/// Clevert, Unterthiner and Hochreiter 2016.
///
/// ```
/// use bochner_nn::elu;
/// use dfdx::prelude::*;
///
/// let x = Cpu::default().tensor([-1.0_f64, 0.0, 2.0]);
/// let y = elu(x.leaky_trace())?;
/// let (e, dx) = ((-1.0_f64).exp(), y.sum().backward().get(&x).array());
/// assert!((dx[0] - e).abs() < 1e-15);
/// assert_eq!(dx[1..], [1.0, 1.0]);
/// # Ok::<(), bochner_nn::Error>(())
/// ```
pub fn elu<S: Shape, E: Element, T: Tape<E, Cpu>>(
    x: Tensor<S, E, Cpu, T>,
) -> Result<Tensor<S, E, Cpu, T>, Error> {
    let shape = *x.shape();
    record_one(Elu, Inputs::<E, T>::new().with(x)?, shape)
}

/// [`elu`] of plain numbers, in place.
pub fn elu_in_place<T: Real>(x: &mut [T]) {
    let work = x.len() * WORK;
    for_each_piece(x.chunks_mut(PIECE), work, |y| {
        let mut slopes = y.to_vec();
        apply_to_piece(y, &mut slopes);
    });
}

/// [`elu_in_place`]; returns the derivative $e^{\min(x, 0)}$ of each element, for
/// [`elu_vjp`]: for operations that end with a unit.
///
/// # Shapes
/// `x: [n]` to `[n]`.
///
/// ```
/// use bochner_nn::{elu_vjp, elu_with_slopes};
///
/// let mut x = [-1.0_f64, 2.0];
/// let slopes = elu_with_slopes(&mut x);
/// assert_eq!(x, [(-1.0_f64).exp() - 1.0, 2.0]);
/// assert_eq!(elu_vjp(&slopes, &[3.0, 4.0]), [3.0 * (-1.0_f64).exp(), 4.0]);
/// ```
pub fn elu_with_slopes<T: Real>(x: &mut [T]) -> Vec<T> {
    let work = x.len() * WORK;
    let [slopes] = written_by([x.len()], |[slopes]| {
        let pieces = x.chunks_mut(PIECE).zip(slopes.chunks(PIECE));
        for_each_piece(pieces, work, |(y, slopes)| {
            let slopes = slopes.copy_of(y);
            apply_to_piece(y, slopes);
        });
    });
    slopes
}

/// The gradient along $x$, from the derivative that [`elu_with_slopes`] gives and the cotangent.
///
/// # Shapes
/// `slopes, dy: [n]` to `[n]`.
///
/// # Panics
/// Unless both are as long.
pub fn elu_vjp<T: Real>(slopes: &[T], dy: &[T]) -> Vec<T> {
    assert_eq!(slopes.len(), dy.len(), "a derivative for each element");
    let [dx] = written_by([dy.len()], |[dx]| {
        let pieces = dx.chunks(PIECE).zip(slopes.chunks(PIECE));
        let pieces = pieces.zip(dy.chunks(PIECE));
        // Reading and writing, not arithmetic, takes the time.
        for_each_piece(pieces, 8 * dy.len(), |((dx, slopes), dy)| {
            let dx = dx.copy_of(dy).iter_mut();
            dx.zip(slopes).for_each(|(dx, &slope)| *dx *= slope);
        });
    });
    dx
}

/// Elements of a piece of work.
const PIECE: usize = 1 << 13;
/// Multiplications that take as long as one element.
const WORK: usize = 16;

/// From $x$ in both to $y$ and its derivative.
fn apply_to_piece<T: Real>(y: &mut [T], slopes: &mut [T]) {
    instructions::run(Negative(slopes));
    exp_in_place(slopes);
    instructions::run(Finish { y, slopes });
}

/// The negative parts; what is no number stays so.
struct Negative<'a, T>(&'a mut [T]);

impl<T: Real> Task for Negative<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        for x in self.0 {
            *x = if *x > T::zero() { T::zero() } else { *x };
        }
    }
}

/// The positive parts, and what the exponential is less than one.
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

/// [`elu`] as an operation on `x`.
struct Elu;

impl<T: Real> Operation<T> for Elu {
    /// The derivative.
    type Saved = Vec<T>;

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
    ) -> Result<(Vec<ArrayD<T>>, Self::Saved), BoxError> {
        let [x] = slices(inputs);
        let mut y = x.to_vec();
        let slopes = elu_with_slopes(&mut y);
        let y = ArrayD::from_shape_vec(inputs[0].raw_dim(), y)?;
        Ok((vec![y], slopes))
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        slopes: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
    ) -> Result<Vec<Option<ArrayD<T>>>, BoxError> {
        let [dy] = slices(cotangents);
        super::gradients(inputs, [elu_vjp(slopes, dy)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::{finite_difference, relative_error};
    use dfdx::prelude::*;

    fn numbers(n: usize) -> Vec<f64> {
        (0..n)
            .map(|i| ((i * 37) % 101) as f64 / 15.0 - 3.3)
            .collect()
    }

    #[test]
    fn it_is_its_formula() {
        // More than a piece, and enough for several threads.
        let x = numbers(100_000);
        let mut y = x.clone();
        elu_in_place(&mut y);
        let formula = |x: f64| if x > 0.0 { x } else { x.exp_m1() };
        assert!(
            x.iter()
                .zip(&y)
                .all(|(&x, y)| (formula(x) - y).abs() < 1e-15)
        );
        let mut z = x.clone();
        let slopes = elu_with_slopes(&mut z);
        assert_eq!(z, y);
        let slope = |x: f64| x.min(0.0).exp();
        assert!(
            x.iter()
                .zip(&slopes)
                .all(|(&x, s)| (slope(x) - s).abs() < 1e-15)
        );
        let dx = elu_vjp(&slopes, &x);
        let products = x.iter().zip(&slopes).map(|(x, s)| x * s);
        assert!(dx.iter().copied().eq(products));
    }

    #[test]
    fn its_gradient_agrees_with_finite_differences() {
        let (device, x) = (Cpu::default(), numbers(40));
        let of = |x: &[f64]| device.tensor_from_vec(x.to_vec(), (40_usize,));
        let value = |x: &[f64]| elu(of(x)).unwrap().square().sum().array();
        let tensor = of(&x);
        let loss = elu(tensor.leaky_trace()).unwrap().square().sum();
        let got = loss.backward().get(&tensor).as_vec();
        assert!(relative_error(&got, &finite_difference(&x, value)) < 1e-8);
    }

    #[test]
    fn extremes_stay_what_they_are() {
        let mut x = [
            f32::MAX,
            f32::MIN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            -0.0,
            f32::NAN,
        ];
        elu_in_place(&mut x);
        assert_eq!(x[..5], [f32::MAX, -1.0, f32::INFINITY, -1.0, 0.0]);
        assert!(x[5].is_nan());
    }
}
