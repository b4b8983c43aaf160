//! The hyperbolic tangent.

use super::arithmetic::Arithmetic;
use super::exponential::exponential_minus_one;
use super::lane::Lane;

/// $\tanh x = \pm e / (e + 2)$ with $e = e^{2 |x|} - 1$, to a small relative error near zero too.
#[inline(always)]
pub(crate) fn tanh<T: Lane, A: Arithmetic>(x: T) -> T {
    let two = T::one() + T::one();
    let double = x.abs() * two;
    // From here on the result rounds to one.
    let highest = two.powi(6);
    let e = exponential_minus_one::<T, A>(if double > highest { highest } else { double });
    (e / (e + two)).copysign(x)
}
