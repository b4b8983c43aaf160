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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_leaves_room_for_the_others() {
        assert_eq!(unit::<f64>(10.0, 20.0), 0);
        assert_eq!(unit::<f64>(10.0, -1e9), 0);
        // 2^1000 becomes 2^-256, and products with anything up to 2^1024 are in range.
        assert_eq!(unit::<f64>(1000.0, 0.0), 1256);
        // Others that are small in this place may be missing in another: they excuse no large number.
        assert_eq!(unit::<f64>(1000.0, -900.0), 1256);
        let there: f32 = over_power(3.0, 200);
        assert_eq!(multiplied::<f32>(there.as_f64(), 0), there);
        assert_eq!(multiplied::<f64>(over_power(3.0, 200), 200), 3.0);
    }

    #[test]
    fn powers_are_multiplied_as_scalbn_does() {
        let some = [
            0.0,
            -1.0,
            0.7,
            1e-300,
            5e-324,
            -3.3e-308,
            f64::MAX,
            f64::INFINITY,
        ];
        for power in [
            -2000, -1075, -1023, -1022, -1021, -1, 0, 1, 1022, 1023, 1024, 3000,
        ] {
            for x in some {
                assert_eq!(times_power(x, power), libm::scalbn(x, power), "{x} {power}");
            }
        }
        assert_eq!(over_power(1.0_f32, i32::MIN), f32::INFINITY);
    }

    #[test]
    fn what_overflows_is_the_largest_number() {
        assert_eq!(multiplied::<f32>(-1e30, 100), f32::MIN);
        assert!(multiplied::<f32>(f64::NAN, 0).is_nan());
        assert_eq!(
            [1e39_f64, -1e39].map(|x| bounded(x as f32)),
            [f32::MAX, f32::MIN]
        );
        assert!(bounded(f64::NAN).is_nan());
        assert_eq!(largest(&[1.0, f64::INFINITY, -3.0, f64::NAN]), 3.0);
        assert_eq!(log2_largest(&[0.25_f32, -4.0]), 2.0);
    }
}
