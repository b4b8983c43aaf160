//! The constants and bits of a type that the algorithms need.

use super::arithmetic::Arithmetic;
use super::{exponential, logarithm, normal, power_of_two, trigonometry};
use crate::product::{Portable, Vector};
use num_traits::{Float, PrimInt, WrappingAdd, WrappingSub};

/// The constants and bits of `f32` and `f64`.
///
/// The trait has functions instead of methods, so that nothing is added to what can be called on a
/// [`Real`](crate::Real).
pub trait Lane: Float + 'static {
    /// The unsigned integer of the same size.
    type Bits: PrimInt + WrappingAdd + WrappingSub;

    /// A register of 64 bytes.
    #[cfg(target_arch = "x86_64")]
    type Vector512: Vector<Self>;
    /// A register of 32 bytes.
    #[cfg(target_arch = "x86_64")]
    type Vector256: Vector<Self>;
    /// A register of 16 bytes.
    type Vector128: Vector<Self>;

    /// Bits of the significand that are stored.
    const SIGNIFICAND: usize;
    /// Bits of the whole number.
    const WIDTH: usize;
    /// The number that is added to an exponent before it is stored.
    const BIAS: Self::Bits;
    /// $1.5 \cdot 2^{\text{SIGNIFICAND}}$: adding it rounds to an integer, which then stands in the
    /// low bits.
    const SHIFTER: Self;
    /// $2^{\lceil \text{digits} / 2 \rceil} + 1$.
    const SPLITTER: Self;
    /// The numbers of the exponential.
    const EXPONENTIAL: exponential::Constants<Self>;
    /// The numbers of the power of two.
    const POWER_OF_TWO: power_of_two::Constants<Self>;
    /// The numbers of the logarithm.
    const LOGARITHM: logarithm::Constants<Self>;
    /// The numbers of the normal distribution.
    const NORMAL: normal::Constants<Self>;
    /// The numbers of sine and cosine.
    const TRIGONOMETRY: trigonometry::Constants<Self>;

    /// The number's bits.
    fn bits(x: Self) -> Self::Bits;

    /// The number with these bits.
    fn of_bits(bits: Self::Bits) -> Self;

    /// $ab + c$, rounded once.
    fn fused(a: Self, b: Self, c: Self) -> Self;

    /// `x` modulo a quarter turn.
    fn reduce<A: Arithmetic>(x: Self) -> trigonometry::Reduced<Self>;
}

impl Lane for f32 {
    type Bits = u32;
    #[cfg(target_arch = "x86_64")]
    type Vector512 = std::arch::x86_64::__m512;
    #[cfg(target_arch = "x86_64")]
    type Vector256 = std::arch::x86_64::__m256;
    type Vector128 = Portable<f32, 4>;

    const SIGNIFICAND: usize = 23;
    const WIDTH: usize = 32;
    const BIAS: u32 = 127;
    const SHIFTER: f32 = 12_582_912.0;
    const SPLITTER: f32 = 4097.0;
    const EXPONENTIAL: exponential::Constants<f32> = exponential::SINGLE;
    const POWER_OF_TWO: power_of_two::Constants<f32> = power_of_two::SINGLE;
    const LOGARITHM: logarithm::Constants<f32> = logarithm::SINGLE;
    const NORMAL: normal::Constants<f32> = normal::SINGLE;
    const TRIGONOMETRY: trigonometry::Constants<f32> = trigonometry::SINGLE;

    #[inline(always)]
    fn bits(x: f32) -> u32 {
        x.to_bits()
    }

    #[inline(always)]
    fn of_bits(bits: u32) -> f32 {
        f32::from_bits(bits)
    }

    #[inline(always)]
    fn fused(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }

    #[inline(always)]
    fn reduce<A: Arithmetic>(x: f32) -> trigonometry::Reduced<f32> {
        trigonometry::reduce_single::<A>(x)
    }
}

impl Lane for f64 {
    type Bits = u64;
    #[cfg(target_arch = "x86_64")]
    type Vector512 = std::arch::x86_64::__m512d;
    #[cfg(target_arch = "x86_64")]
    type Vector256 = std::arch::x86_64::__m256d;
    type Vector128 = Portable<f64, 2>;

    const SIGNIFICAND: usize = 52;
    const WIDTH: usize = 64;
    const BIAS: u64 = 1023;
    const SHIFTER: f64 = 6_755_399_441_055_744.0;
    const SPLITTER: f64 = 134_217_729.0;
    const EXPONENTIAL: exponential::Constants<f64> = exponential::DOUBLE;
    const POWER_OF_TWO: power_of_two::Constants<f64> = power_of_two::DOUBLE;
    const LOGARITHM: logarithm::Constants<f64> = logarithm::DOUBLE;
    const NORMAL: normal::Constants<f64> = normal::DOUBLE;
    const TRIGONOMETRY: trigonometry::Constants<f64> = trigonometry::DOUBLE;

    #[inline(always)]
    fn bits(x: f64) -> u64 {
        x.to_bits()
    }

    #[inline(always)]
    fn of_bits(bits: u64) -> f64 {
        f64::from_bits(bits)
    }

    #[inline(always)]
    fn fused(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }

    #[inline(always)]
    fn reduce<A: Arithmetic>(x: f64) -> trigonometry::Reduced<f64> {
        trigonometry::reduce_double::<A>(x)
    }
}
