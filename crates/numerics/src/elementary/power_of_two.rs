//! Powers of two, for weights that are at most one.

use super::arithmetic::{Arithmetic, polynomial};
use super::lane::Lane;
use num_traits::WrappingAdd;

/// $2^x$ inside a [`Task`](crate::instructions::Task), for $x \le 1$: half the work of
/// [`exp_in_place`](crate::elementary::exp_in_place), which knows all numbers.
///
/// # Numerics
/// The error is below 1.25 ulp (largest found: 1.12). Where the result would be below the smallest normal number it
/// is zero, as it is at $-\infty$; above $x = 1$ the result is meaningless. NaN stays NaN.
#[inline(always)]
pub fn exp2<T: Lane, A: Arithmetic>(x: T) -> T {
    let k = &T::POWER_OF_TWO;
    let shifted = x + T::SHIFTER;
    let r = x - (shifted - T::SHIFTER);
    let y = A::mul_add(polynomial::<T, A>(k.polynomial, r), r, T::one());
    // The shifted number's low bits are those of the exponent; all others fall out on the left.
    let power = T::of_bits(T::bits(y).wrapping_add(&(T::bits(shifted) << T::SIGNIFICAND)));
    // NaN fails both comparisons.
    if x >= k.lowest {
        power
    } else if x < k.lowest {
        T::zero()
    } else {
        x
    }
}

/// Numbers of the power of two.
#[derive(Debug)]
pub struct Constants<T: 'static> {
    /// The binary logarithm of the smallest normal number.
    lowest: T,
    /// $(2^r - 1) / r$ for $|r| \le \tfrac12$.
    polynomial: &'static [T],
}

pub(super) const SINGLE: Constants<f32> = Constants {
    lowest: -126.0,
    polynomial: &[
        std::f32::consts::LN_2,
        0.240_226_58,
        0.055_503_342,
        0.009_617_452,
        0.001_339_956_9,
        0.000_155_955_1,
    ],
};

pub(super) const DOUBLE: Constants<f64> = Constants {
    lowest: -1022.0,
    polynomial: &[
        std::f64::consts::LN_2,
        0.24022650695910072,
        0.055504108664821625,
        0.00961812910762848,
        0.001333355814640647,
        0.00015403530393370734,
        1.5252733841556773e-5,
        1.3215486808705563e-6,
        1.0178057087733941e-7,
        7.0548973041554995e-9,
        4.4558179083360645e-10,
        2.5729324177362305e-11,
    ],
};
