//! Arithmetic that stays within the range of its type, so that no infinity meets another one.

use bochner_numerics::{Real, scaling};
use ndarray::{ArrayBase, Data, Dimension};

/// `x`, or the largest number of the type with its sign where `x` is infinite; NaN stays NaN.
pub(crate) fn bounded<T: Real>(x: T) -> T {
    if x > T::max_value() {
        T::max_value()
    } else if x < -T::max_value() {
        -T::max_value()
    } else {
        x
    }
}

/// The binary logarithm of the largest absolute value among the finite numbers of `x`.
pub(crate) fn log2_largest<T: Real, S: Data<Elem = T>, D: Dimension>(x: &ArrayBase<S, D>) -> f64 {
    match x.as_slice_memory_order() {
        Some(x) => scaling::log2_largest(x),
        None => scaling::log2_largest(&x.iter().copied().collect::<Vec<T>>()),
    }
}
