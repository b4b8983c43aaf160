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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Real;
    use crate::elementary::accuracy::{self, Pair, largest_error, on_every_set, uniform};
    use crate::elementary::block::{BLOCK, Blockwise};

    #[derive(Clone, Copy)]
    struct PowerOfTwo;

    impl<T: Lane> Blockwise<T, 1> for PowerOfTwo {
        #[inline(always)]
        fn block<A: Arithmetic>(&self, x: &[T; BLOCK]) -> [[T; BLOCK]; 1] {
            [x.map(exp2::<T, A>)]
        }
    }

    const LN_2: Pair = Pair(std::f64::consts::LN_2, 2.3190468138462996e-17);

    #[test]
    #[cfg_attr(miri, ignore = "a sweep over safe code")]
    fn errors_are_below_the_bound() {
        let reference = |x: f64| [accuracy::exp(Pair::from(x) * LN_2)];
        for bound in [1021.9, 2.0, 1e-3] {
            let x: Vec<f64> = uniform(-bound, 1.0, 20_000);
            assert!(largest_error(PowerOfTwo, &x, reference) < 1.25);
            let x: Vec<f32> = uniform(-bound.min(125.9), 1.0, 20_000);
            assert!(largest_error(PowerOfTwo, &x, |x| reference(x.as_f64())) < 1.25);
        }
    }

    fn the_ends_are_exact<T: Real>(lowest: f64) {
        let ends = [0.0, -0.0, -1.0, 1.0, lowest, lowest - 0.5, -1e30];
        let mut x = ends.map(T::of).to_vec();
        // A NaN with other bits.
        let other = T::of_bits(T::bits(T::nan()) | T::bits(T::of(1.1)) >> 3);
        x.extend([T::neg_infinity(), T::nan(), other]);
        for (set, [y]) in on_every_set(PowerOfTwo, &x) {
            let want = [1.0, 1.0, 0.5, 2.0, T::min_positive_value().as_f64()];
            assert_eq!(y[..5], want.map(T::of), "{set:?}");
            assert_eq!(y[5..8], [T::zero(); 3], "{set:?}");
            assert!(y[8].is_nan() && y[9].is_nan(), "{set:?}");
        }
    }

    #[test]
    fn the_ends_of_the_range_are_exact() {
        the_ends_are_exact::<f32>(-126.0);
        the_ends_are_exact::<f64>(-1022.0);
    }
}
