//! The hyperbolic tangent.

use super::arithmetic::Arithmetic;
use super::exponential::exponential_minus_one;
use super::lane::Lane;

/// $\tanh x = \pm e / (e + 2)$ with $e = e^{2 |x|} - 1$.
///
/// # Numerics
/// The error is below 3 ulp, close to zero too. $\tanh(\pm 0) = \pm 0$, $\tanh(\pm \infty) = \pm 1$; NaN stays NaN.
#[inline(always)]
pub(crate) fn tanh<T: Lane, A: Arithmetic>(x: T) -> T {
    let two = T::one() + T::one();
    let double = x.abs() * two;
    // At 64 the result has long been one.
    let highest = two.powi(6);
    let bounded = if double > highest { highest } else { double };
    let e = exponential_minus_one::<T, A>(bounded);
    (e / (e + two)).copysign(x)
}
