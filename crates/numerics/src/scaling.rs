//! Bounds that keep a backward pass free of infinities: one that meets another becomes NaN.

use crate::Real;

/// `x` rounded, or the largest number of the type with its sign where it overflows; NaN stays NaN.
#[inline(always)]
pub fn rounded<T: Real>(x: f64) -> T {
    let largest = T::max_value().as_f64();
    T::of(x.clamp(-largest, largest))
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
