//! Sine and cosine.

use super::arithmetic::{Arithmetic, ordered_sum, polynomial, sum};
use super::block::{BLOCK, Blockwise, Map};
use super::instruction_set::InstructionSet;
use super::lane::Lane;
use crate::Real;
use crate::operations::{Operations, record};
use num_traits::{One, WrappingAdd, Zero};

/// $\text{sin}_i = \sin x_i$ and $\text{cos}_i = \cos x_i$.
///
/// # Numerics
/// The error is below 1 ulp, close to the zeros of both functions too. Angles beyond $2^{17}$ (`f32`) or $2^{20}$
/// (`f64`) are left to the standard library, one at a time. Infinite angles and NaN give NaN.
///
/// # Panics
/// If the lengths differ.
pub fn sin_cos<T: Real>(x: &[T], sin: &mut [T], cos: &mut [T]) {
    assert_eq!(x.len(), sin.len(), "sin_cos: lengths of `x` and `sin`");
    assert_eq!(x.len(), cos.len(), "sin_cos: lengths of `x` and `cos`");
    record(Operations::sines_cosines(x.len()));
    InstructionSet::fastest().run(Map {
        function: SinCos,
        x,
        out: [sin, cos],
    });
}

#[derive(Clone, Copy)]
pub(super) struct SinCos;

impl<T: Lane> Blockwise<T, 2> for SinCos {
    #[inline(always)]
    fn block<A: Arithmetic>(&self, x: &[T; BLOCK]) -> [[T; BLOCK]; 2] {
        let mut values = [[T::zero(); BLOCK]; 2];
        for i in 0..BLOCK {
            (values[0][i], values[1][i]) = of_reduced::<T, A>(T::reduce::<A>(x[i].abs()), x[i]);
        }
        values
    }

    #[inline(always)]
    fn is_beyond(&self, x: T) -> bool {
        x.abs() > T::TRIGONOMETRY.largest
    }

    #[cold]
    fn beyond(&self, x: T) -> [T; 2] {
        x.sin_cos().into()
    }
}

/// $\sin x$ and $\cos x$ without branches.
///
/// # Numerics
/// The numerics of [`sin_cos`], except that a finite angle beyond its bound is replaced by the bound with the same
/// sign.
#[inline(always)]
pub(crate) fn bounded_sin_cos<T: Lane, A: Arithmetic>(x: T) -> (T, T) {
    let largest = T::TRIGONOMETRY.largest;
    let angle = x.abs();
    // The product is zero, or NaN where `x` is infinite.
    let angle = if angle > largest {
        largest + x * T::zero()
    } else {
        angle
    };
    of_reduced::<T, A>(T::reduce::<A>(angle), x)
}

/// Numbers of the sine and cosine.
#[derive(Debug)]
pub struct Constants<T: 'static> {
    /// The largest angle whose reduction is accurate.
    largest: T,
    /// $(\sin(r) / r - 1) / z$ with $z = r^2$, $|r| \le \pi / 4$.
    sine: &'static [T],
    /// $(\cos r - 1 + z / 2) / z^2$.
    cosine: &'static [T],
}

pub(super) const SINGLE: Constants<f32> = Constants {
    largest: 131_072.0,
    sine: &[-0.16666655, 0.008332158, -0.00019514958],
    cosine: &[0.041666646, -0.0013887313, 2.4432786e-5],
};

pub(super) const DOUBLE: Constants<f64> = Constants {
    largest: 1_048_576.0,
    sine: &[
        -0.1666666666666663,
        0.008333333333322063,
        -0.00019841269829542577,
        2.7557313604515405e-6,
        -2.5050745036157526e-8,
        1.5896067418133192e-10,
    ],
    cosine: &[
        0.041666666666666595,
        -0.0013888888888872975,
        2.4801587288800055e-5,
        -2.755731416398443e-7,
        2.0875698709561005e-9,
        -1.1358423567664991e-11,
    ],
};

/// An angle modulo a quarter turn.
#[derive(Clone, Copy, Debug)]
pub struct Reduced<T: Lane> {
    /// The remainder, between $-\pi / 4$ and $\pi / 4$.
    r: T,
    /// The part of the remainder that rounding lost.
    lost: T,
    /// The number of quarter turns in the low bits.
    quarters: T::Bits,
}

/// $\pi / 2$ in four parts, of which three have 33 bits: their products with a number of quarter
/// turns below $2^{20}$ are exact (Cody and Waite).
const QUARTER: [f64; 4] = [
    1.5707963267341256,
    6.077100506303966e-11,
    2.0222662487111665e-21,
    8.4784276603689e-32,
];

/// The rest of $\pi / 2$ after the first part.
const QUARTER_REST: f64 = 6.077100506506192e-11;

/// $\pi / 2$ in three parts.
const QUARTER_SINGLE: [f32; 3] = [std::f32::consts::FRAC_PI_2, -4.371139e-8, -1.7151245e-15];

#[inline(always)]
pub(super) fn reduce_single<A: Arithmetic>(x: f32) -> Reduced<f32> {
    if A::FUSED {
        reduce_single_fused::<A>(x)
    } else {
        reduce_single_in_double::<A>(x)
    }
}

/// The reduction in the type's own digits.
///
/// All steps but the last are exact: the first remainder is a multiple of $2^{-24}$ below one, and of
/// every digit of the second product.
#[inline(always)]
fn reduce_single_fused<A: Arithmetic>(x: f32) -> Reduced<f32> {
    let shifted = A::mul_add(x, std::f32::consts::FRAC_2_PI, f32::SHIFTER);
    let n = shifted - f32::SHIFTER;
    let first = A::mul_add(-n, QUARTER_SINGLE[0], x);
    let (product, product_lost) = A::product(-n, QUARTER_SINGLE[1]);
    let (r, r_lost) = ordered_sum(first, product);
    Reduced {
        r,
        lost: A::mul_add(-n, QUARTER_SINGLE[2], r_lost + product_lost),
        quarters: shifted.to_bits(),
    }
}

/// The reduction in double precision, whose digits leave enough for any angle up to the largest.
#[inline(always)]
fn reduce_single_in_double<A: Arithmetic>(x: f32) -> Reduced<f32> {
    let x = f64::from(x);
    let shifted = A::mul_add(x, std::f64::consts::FRAC_2_PI, f64::SHIFTER);
    let n = shifted - f64::SHIFTER;
    let remainder = A::mul_add(-n, QUARTER_REST, A::mul_add(-n, QUARTER[0], x));
    let r = remainder as f32;
    Reduced {
        r,
        lost: (remainder - f64::from(r)) as f32,
        quarters: shifted.to_bits() as u32,
    }
}

/// The reduction with every rounding error carried along: a `f64` comes as close as $2^{-60}$ to a multiple of
/// $\pi / 2$.
#[inline(always)]
pub(super) fn reduce_double<A: Arithmetic>(x: f64) -> Reduced<f64> {
    let shifted = A::mul_add(x, std::f64::consts::FRAC_2_PI, f64::SHIFTER);
    let n = shifted - f64::SHIFTER;
    let first = A::mul_add(-n, QUARTER[0], x);
    let (second, second_lost) = sum(first, -n * QUARTER[1]);
    let (third, third_lost) = sum(second, -n * QUARTER[2]);
    let fourth = A::mul_add(-n, QUARTER[3], second_lost + third_lost);
    let (r, lost) = ordered_sum(third, fourth);
    Reduced {
        r,
        lost,
        quarters: shifted.to_bits(),
    }
}

/// Sine and cosine of an angle with the sign of `x` and this remainder.
#[inline(always)]
fn of_reduced<T: Lane, A: Arithmetic>(reduced: Reduced<T>, x: T) -> (T, T) {
    let (one, zero) = (T::Bits::one(), T::Bits::zero());
    let two = one << 1;
    let (sine, cosine) = of_remainder::<T, A>(reduced.r, reduced.lost);
    let odd = reduced.quarters & one != zero;
    let sin = if odd { cosine } else { sine };
    let cos = if odd { sine } else { cosine };
    let sin_sign = (reduced.quarters & two) << (T::WIDTH - 2);
    let cos_sign = (reduced.quarters.wrapping_add(&one) & two) << (T::WIDTH - 2);
    let x_sign = T::bits(x) & (one << (T::WIDTH - 1));
    (
        T::of_bits(T::bits(sin) ^ sin_sign ^ x_sign),
        T::of_bits(T::bits(cos) ^ cos_sign),
    )
}

/// $\sin(r + \text{lost})$ and $\cos(r + \text{lost})$.
#[inline(always)]
fn of_remainder<T: Lane, A: Arithmetic>(r: T, lost: T) -> (T, T) {
    let k = &T::TRIGONOMETRY;
    let half = (T::one() + T::one()).recip();
    let z = A::mul_add(r, r, (r + r) * lost);
    let sine = A::mul_add(r * z, polynomial::<T, A>(k.sine, z), lost);
    let cosine = polynomial::<T, A>(k.cosine, z);
    let cosine = if A::FUSED {
        A::mul_add(z, A::mul_add(z, cosine, -half), T::one())
    } else {
        // The bracket is what the difference of the first two terms loses.
        let near_one = T::one() - half * z;
        near_one + (z * z * cosine + ((T::one() - near_one) - half * z))
    };
    (r + sine, cosine)
}
