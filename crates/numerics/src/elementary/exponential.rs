//! The exponential function.

use super::arithmetic::{Arithmetic, polynomial};
use super::block::{BLOCK, Blockwise, MapInPlace};
use super::instruction_set::InstructionSet;
use super::lane::Lane;
use crate::Real;
use crate::operations::{Operations, record};
use num_traits::{WrappingAdd, WrappingSub};

/// $x_i \leftarrow e^{x_i}$.
///
/// # Numerics
/// The error is below 1 ulp. $e^0$ is exactly 1; results below the smallest normal number are
/// rounded, not flushed to zero; $e^{-\infty} = 0$, and what is too large becomes infinite. NaN
/// stays NaN.
///
/// ```
/// let mut weights = [0.0, -1e3, f64::INFINITY];
/// bochner_numerics::elementary::exp_in_place(&mut weights);
/// assert_eq!(weights, [1.0, 0.0, f64::INFINITY]);
/// ```
pub fn exp_in_place<T: Real>(x: &mut [T]) {
    record(Operations::exponentials(x.len()));
    InstructionSet::fastest().run(MapInPlace {
        function: Exponential,
        x,
    });
}

#[derive(Clone, Copy)]
pub(super) struct Exponential;

impl<T: Lane> Blockwise<T, 1> for Exponential {
    #[inline(always)]
    fn block<A: Arithmetic>(&self, x: &[T; BLOCK]) -> [[T; BLOCK]; 1] {
        let mut values = *x;
        for x in &mut values {
            *x = exponential::<T, A>(*x, T::zero());
        }
        [values]
    }
}

/// Numbers of the exponential.
#[derive(Debug)]
pub struct Constants<T: 'static> {
    /// The argument from which downwards the result is zero.
    lowest: T,
    /// The argument from which upwards the result is infinite.
    highest: T,
    log2_e: T,
    /// $\ln 2$ in two parts, the first so short that its product with an exponent is exact.
    ln_2: [T; 2],
    /// $(e^r - 1 - r) / r^2$ for $|r| \le \tfrac12 \ln 2$.
    polynomial: &'static [T],
}

// The polynomials of this and the sibling modules are minimax (Remez's exchange in 60 digits),
// rounded at the end.

pub(super) const SINGLE: Constants<f32> = Constants {
    lowest: -104.5,
    highest: 89.0,
    log2_e: std::f32::consts::LOG2_E,
    ln_2: LN_2_SINGLE,
    polynomial: &[0.5, 0.16666576, 0.041666374, 0.008363205, 0.0013941166],
};

pub(super) const DOUBLE: Constants<f64> = Constants {
    lowest: -746.0,
    highest: 710.0,
    log2_e: std::f64::consts::LOG2_E,
    ln_2: LN_2_DOUBLE,
    polynomial: &[
        0.5,
        0.1666666666666667,
        0.041666666666666685,
        0.008333333333326112,
        0.001388888888887435,
        0.00019841269874902926,
        2.480158734745375e-5,
        2.7557255296107255e-6,
        2.7557252801307097e-7,
        2.5105260229478966e-8,
        2.0921627107528686e-9,
    ],
};

pub(super) const LN_2_SINGLE: [f32; 2] = [0.693_145_75, 1.4286068e-6];
pub(super) const LN_2_DOUBLE: [f64; 2] = [0.6931471803691238, 1.9082149292705877e-10];

/// $e^{\text{high} + \text{low}}$, where `low` is below an ulp or so of `high`.
///
/// With $n$ the integer nearest to $x / \ln 2$ and $r = x - n \ln 2$, the result is $2^n e^r$.
#[inline(always)]
pub(crate) fn exponential<T: Lane, A: Arithmetic>(high: T, low: T) -> T {
    let k = &T::EXPONENTIAL;
    let x = if high < k.lowest { k.lowest } else { high };
    let x = if x > k.highest { k.highest } else { x };
    // Beyond the bounds an ulp of `high`, and with it `low`, may be large.
    let low = if x == high { low } else { T::zero() };
    let (excess, shifted) = of_remainder::<T, A>(x, low);
    scale(T::one() + excess, shifted)
}

/// $e^x - 1$ for $0 \le x \le 80$, to a small relative error.
#[inline(always)]
pub(super) fn exponential_minus_one<T: Lane, A: Arithmetic>(x: T) -> T {
    let (excess, shifted) = of_remainder::<T, A>(x, T::zero());
    let n = T::bits(shifted).wrapping_sub(&T::bits(T::SHIFTER));
    let power = T::of_bits(n.wrapping_add(&T::BIAS) << T::SIGNIFICAND);
    A::mul_add(power, excess, power - T::one())
}

/// $e^r - 1$, and the shifter plus $n$, for $x + \text{low} = n \ln 2 + r$.
#[inline(always)]
fn of_remainder<T: Lane, A: Arithmetic>(x: T, low: T) -> (T, T) {
    let k = &T::EXPONENTIAL;
    let shifted = A::mul_add(x, k.log2_e, T::SHIFTER);
    let n = shifted - T::SHIFTER;
    let r_high = A::mul_add(-n, k.ln_2[0], x);
    let r_low = A::mul_add(-n, k.ln_2[1], low);
    let r = r_high + r_low;
    let r_lost = r_low - (r - r_high);
    let curved = A::mul_add(r * r, polynomial::<T, A>(k.polynomial, r), r_lost);
    (r + curved, shifted)
}

/// $2^n y$, with $n$ in the low bits of `shifted`.
///
/// The power is two factors, since neither $2^{\text{BIAS} + 1}$ nor the smallest powers are numbers.
#[inline(always)]
fn scale<T: Lane>(y: T, shifted: T) -> T {
    let bits = T::bits(shifted).wrapping_sub(&T::bits(T::SHIFTER));
    let biased = bits.wrapping_add(&(T::BIAS + T::BIAS));
    let first = biased >> 1;
    let second = biased.wrapping_sub(&first);
    y * T::of_bits(first << T::SIGNIFICAND) * T::of_bits(second << T::SIGNIFICAND)
}
