//! Powers of two that keep a backward pass in range.
//!
//! A gradient is linear in the cotangents: divided by a power of two, computed and multiplied again, it
//! has the same bits, as long as nothing overflows or vanishes. Where it would overflow, an infinity
//! would meet another one and become NaN.

use crate::elementary::max_norm;
use crate::{Real, parallel};

/// The exponent of the power of two by which numbers are divided before they are multiplied with others:
/// zero if their products are well in range, given the binary logarithms of the largest numbers of both,
/// and otherwise one that leaves room for whatever the others are.
pub fn unit<T: Real>(largest: f64, others: f64) -> i32 {
    let range = log2_range::<T>();
    if largest + others.max(0.0) < range / 2.0 {
        0
    } else {
        (largest + range / 4.0).ceil() as i32
    }
}

/// The binary logarithm of the largest number of a type.
pub fn log2_range<T: Real>() -> f64 {
    T::max_value().as_f64().log2()
}

/// The binary logarithm of the largest absolute value among the finite numbers of `x`, found by all
/// threads; minus infinity if there is none but zero.
pub fn log2_largest<T: Real>(x: &[T]) -> f64 {
    finite_norm(parallel::max_norm(x), x).as_f64().log2()
}

/// The largest absolute value among the finite numbers of `x`.
pub fn largest<T: Real>(x: &[T]) -> T {
    finite_norm(max_norm(x), x)
}

/// The largest absolute value among the finite numbers, given the maximum norm of all.
fn finite_norm<T: Real>(norm: T, x: &[T]) -> T {
    if norm.is_finite() {
        return norm;
    }
    let finite = x.iter().map(|x| x.abs()).filter(|x| x.is_finite());
    finite.fold(T::zero(), T::max)
}

/// A number divided by $2^p$, where $p$ is `power`.
#[inline(always)]
pub fn over_power<T: Real>(x: T, power: i32) -> T {
    T::of(times_power(x.as_f64(), power.saturating_neg()))
}

/// $x 2^p$, rounded once.
#[inline(always)]
fn times_power(x: f64, power: i32) -> f64 {
    const BIAS: i32 = f64::MAX_EXP - 1;
    match (1 - BIAS..=BIAS).contains(&power) {
        // The power is a normal number: one product, exact or rounded once, which loops need not call a function for.
        true => x * f64::from_bits(((power + BIAS) as u64) << (f64::MANTISSA_DIGITS - 1)),
        false => libm::scalbn(x, power),
    }
}

/// `x` times $2^p$, rounded, or the largest number of the type: what overflows must not meet another
/// infinity later.
#[inline(always)]
pub fn multiplied<T: Real>(x: f64, power: i32) -> T {
    let largest = T::max_value().as_f64();
    T::of(times_power(x, power).clamp(-largest, largest))
}

/// `x`, or the largest number of the type with its sign where `x` is infinite; NaN stays NaN.
#[inline(always)]
pub fn bounded<T: Real>(x: T) -> T {
    if x > T::max_value() {
        T::max_value()
    } else if x < -T::max_value() {
        -T::max_value()
    } else {
        x
    }
}
