//! The natural logarithm: in two parts, to more digits than the type has, and rounded to the type.

use super::arithmetic::{Arithmetic, ordered_sum, polynomial};
use super::block::{BLOCK, Blockwise, MapInPlace};
use super::exponential::{LN_2_DOUBLE, LN_2_SINGLE};
use super::instruction_set::InstructionSet;
use super::lane::Lane;
use crate::Real;
use num_traits::{WrappingAdd, WrappingSub};

/// $x_i \leftarrow \ln x_i$.
///
/// # Numerics
/// The error is below 1.5 ulp, subnormal numbers included. $\ln 1$ is exactly 0, $\ln 0 = -\infty$,
/// $\ln \infty = \infty$; a negative number and NaN give NaN.
///
/// ```
/// let mut x = [1.0, 0.0, f64::INFINITY];
/// bochner_numerics::elementary::ln_in_place(&mut x);
/// assert_eq!(x, [0.0, f64::NEG_INFINITY, f64::INFINITY]);
/// ```
pub fn ln_in_place<T: Real>(x: &mut [T]) {
    InstructionSet::fastest().run(MapInPlace {
        function: NaturalLogarithm,
        x,
    });
}

#[derive(Clone, Copy)]
pub(super) struct NaturalLogarithm;

impl<T: Lane> Blockwise<T, 1> for NaturalLogarithm {
    #[inline(always)]
    fn block<A: Arithmetic>(&self, x: &[T; BLOCK]) -> [[T; BLOCK]; 1] {
        let mut values = *x;
        for x in &mut values {
            *x = ln::<T, A>(*x);
        }
        [values]
    }
}

/// Numbers of the logarithm.
#[derive(Debug)]
pub struct Constants<T: 'static> {
    smallest_normal: T,
    /// A factor that makes every subnormal number normal, and its logarithm to base 2.
    lift: (T, T),
    /// $\sqrt{1/2}$: significands are taken from here to twice that.
    sqrt_half: T,
    /// $2^{\text{SIGNIFICAND}}$, and the same plus the bias.
    whole: (T, T),
    ln_2: [T; 2],
    third: [T; 2],
    /// $(\operatorname{artanh}(s) / s - 1 - z / 3) / z^2$ with $z = s^2$, $|s| \le 3 - 2 \sqrt 2$.
    polynomial: &'static [T],
}

pub(super) const SINGLE: Constants<f32> = Constants {
    smallest_normal: f32::MIN_POSITIVE,
    lift: (16_777_216.0, 24.0),
    sqrt_half: std::f32::consts::FRAC_1_SQRT_2,
    whole: (8_388_608.0, 8_388_735.0),
    ln_2: LN_2_SINGLE,
    third: [0.33333334, -9.934108e-9],
    polynomial: &[0.20000076, 0.14273542, 0.11709909],
};

pub(super) const DOUBLE: Constants<f64> = Constants {
    smallest_normal: f64::MIN_POSITIVE,
    lift: (18_014_398_509_481_984.0, 54.0),
    sqrt_half: std::f64::consts::FRAC_1_SQRT_2,
    whole: (4_503_599_627_370_496.0, 4_503_599_627_371_519.0),
    ln_2: LN_2_DOUBLE,
    third: [0.3333333333333333, 1.850371707708594e-17],
    polynomial: &[
        0.20000000000001136,
        0.14285714285045947,
        0.11111111260676738,
        0.09090892118553325,
        0.07693381764040409,
        0.06628334463920861,
        0.0659887464396911,
    ],
};

/// $\ln x$ as the sum of two numbers, for finite $x > 0$.
///
/// With $x = 2^e m$, $\sqrt{1/2} \le m < \sqrt 2$, the result is $e \ln 2 + \ln m$. The sum of the
/// two numbers is accurate to about $2^{-12}$ ulp of the first, so that even the largest exponent
/// of a power leaves an error of a fraction of an ulp.
#[inline(always)]
pub(super) fn logarithm<T: Lane, A: Arithmetic>(x: T) -> (T, T) {
    let k = &T::LOGARITHM;
    let (exponent, significand) = decompose(x);
    let (m_high, m_low) = of_significand::<T, A>(significand);
    let (high, lost) = ordered_sum(exponent * k.ln_2[0], m_high);
    let low = A::mul_add(exponent, k.ln_2[1], lost + m_low);
    ordered_sum(high, low)
}

/// $\ln x$ with the ends of [`ln_in_place`].
#[inline(always)]
pub(crate) fn ln<T: Lane, A: Arithmetic>(x: T) -> T {
    let at_zero = if x == T::zero() {
        T::neg_infinity()
    } else {
        T::nan()
    };
    let ln = natural_logarithm::<T, A>(x);
    let ln = if x == T::infinity() { x } else { ln };
    if x > T::zero() { ln } else { at_zero }
}

/// $\ln x$ for finite $x > 0$, within about an ulp.
#[inline(always)]
pub(super) fn natural_logarithm<T: Lane, A: Arithmetic>(x: T) -> T {
    let k = &T::LOGARITHM;
    let (exponent, m) = decompose(x);
    // With f = m - 1, which is exact, 2 s = f - s f.
    let f = m - T::one();
    let s = f / (m + T::one());
    let z = s * s;
    let series = z * A::mul_add(z, polynomial::<T, A>(k.polynomial, z), k.third[0]);
    let curved = s * (f - (series + series));
    A::mul_add(
        exponent,
        k.ln_2[0],
        f - A::mul_add(-exponent, k.ln_2[1], curved),
    )
}

/// The exponent $e$ and the significand $m$.
#[inline(always)]
fn decompose<T: Lane>(x: T) -> (T, T) {
    let k = &T::LOGARITHM;
    let subnormal = x < k.smallest_normal;
    let lifted = if subnormal { x * k.lift.0 } else { x };
    let lift = if subnormal { k.lift.1 } else { T::zero() };
    let bits = T::bits(lifted);
    let biased = bits
        .wrapping_sub(&T::bits(k.sqrt_half))
        .wrapping_add(&(T::BIAS << T::SIGNIFICAND))
        >> T::SIGNIFICAND;
    let power = biased.wrapping_sub(&T::BIAS) << T::SIGNIFICAND;
    let exponent = T::of_bits(T::bits(k.whole.0) | biased) - k.whole.1;
    (exponent - lift, T::of_bits(bits.wrapping_sub(&power)))
}

/// $\ln m = 2 \operatorname{artanh} s$ with $s = (m - 1) / (m + 1)$, in two parts.
///
/// Only the terms from $s^5$ on are small enough for the type's own digits.
#[inline(always)]
fn of_significand<T: Lane, A: Arithmetic>(m: T) -> (T, T) {
    let k = &T::LOGARITHM;
    let (s_high, s_low) = quotient::<T, A>(m);
    let (z_high, z_lost) = A::product(s_high, s_high);
    let z_low = A::mul_add(s_high + s_high, s_low, z_lost);
    let tail = z_high * polynomial::<T, A>(k.polynomial, z_high);
    let (t_high, t_lost) = ordered_sum(k.third[0], tail);
    let t_low = t_lost + k.third[1];
    let (u_high, u_low) = product::<T, A>((z_high, z_low), (t_high, t_low));
    let (v_high, v_low) = product::<T, A>((s_high, s_low), (u_high, u_low));
    let (w_high, w_lost) = ordered_sum(s_high, v_high);
    let w_low = w_lost + (v_low + s_low);
    (w_high + w_high, w_low + w_low)
}

/// $(m - 1) / (m + 1)$ in two parts.
#[inline(always)]
fn quotient<T: Lane, A: Arithmetic>(m: T) -> (T, T) {
    let above = m - T::one();
    let sum = m + T::one();
    let sum_lost = m - (sum - T::one());
    let inverse = T::one() / sum;
    let high = above * inverse;
    let (product, lost) = A::product(high, sum);
    let remainder = (above - product) - lost - high * sum_lost;
    (high, remainder * inverse)
}

/// The product of two numbers in two parts.
#[inline(always)]
fn product<T: Lane, A: Arithmetic>(a: (T, T), b: (T, T)) -> (T, T) {
    let (high, lost) = A::product(a.0, b.0);
    let low = A::mul_add(a.0, b.1, A::mul_add(a.1, b.0, lost));
    (high, low)
}
