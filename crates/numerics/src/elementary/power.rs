//! Powers with a real exponent.

use super::arithmetic::Arithmetic;
use super::block::{BLOCK, Blockwise};
use super::exponential::exponential;
use super::lane::Lane;
use super::logarithm::logarithm;

/// $x^p$ for $x \ge 0$.
///
/// # Numerics
/// $e^{p \ln x}$ with the logarithm and the product in two parts each, so that the error is below
/// 1 ulp in `f32` and 1.5 ulp in `f64` however large $p \ln x$ is. $0^p$ is 0 for $p > 0$ and infinite for
/// $p < 0$, whatever the sign of the zero; $x^0$ is 1. A negative $x$ gives NaN, even where $p$ is an integer.
#[derive(Clone, Copy)]
pub(super) struct Power<T> {
    exponent: T,
    of_zero: T,
    of_infinity: T,
}

impl<T: Lane> Power<T> {
    /// The power with exponent `p`.
    #[inline(always)]
    pub(super) fn new(p: T) -> Self {
        let by_sign = |positive, negative| {
            // One for an exponent of zero, and NaN for NaN.
            let neither = T::one() + p;
            let of_negative = if p < T::zero() { negative } else { neither };
            if p > T::zero() { positive } else { of_negative }
        };
        Self {
            exponent: bounded(p),
            of_zero: by_sign(T::zero(), T::infinity()),
            of_infinity: by_sign(T::infinity(), T::zero()),
        }
    }

    /// $p \ln x$ in two parts, for finite $x > 0$.
    #[inline(always)]
    fn logarithm<A: Arithmetic>(&self, x: T) -> (T, T) {
        let (high, low) = logarithm::<T, A>(x);
        let (high, lost) = A::product(self.exponent, high);
        (high, A::mul_add(self.exponent, low, lost))
    }

    /// `power`, or what takes its place where $x$ has no logarithm.
    #[inline(always)]
    fn or_end(&self, x: T, power: T) -> T {
        let infinite = x == T::infinity();
        let power = if infinite { self.of_infinity } else { power };
        let power = if x == T::zero() { self.of_zero } else { power };
        if x >= T::zero() { power } else { T::nan() }
    }
}

/// $x^p$, with the numerics of [`Power`].
#[inline(always)]
pub(crate) fn power<T: Lane, A: Arithmetic>(x: T, p: T) -> T {
    let function = Power::new(p);
    let (high, low) = function.logarithm::<A>(x);
    function.or_end(x, exponential::<T, A>(high, low))
}

impl<T: Lane> Blockwise<T, 1> for Power<T> {
    /// The block is computed in two passes, since the constants of both do not fit into the registers together.
    #[inline(always)]
    fn block<A: Arithmetic>(&self, x: &[T; BLOCK]) -> [[T; BLOCK]; 1] {
        let (mut high, mut low) = ([T::zero(); BLOCK], [T::zero(); BLOCK]);
        for i in 0..BLOCK {
            (high[i], low[i]) = self.logarithm::<A>(x[i]);
        }
        let mut values = [T::zero(); BLOCK];
        for i in 0..BLOCK {
            values[i] = self.or_end(x[i], exponential::<T, A>(high[i], low[i]));
        }
        [values]
    }
}

/// `p`, brought to where its product with a logarithm cannot overflow.
///
/// Nothing is lost: the logarithm of any number but 1 is at least half an epsilon, and so every
/// power beyond the bound is zero or infinite.
#[inline(always)]
fn bounded<T: Lane>(p: T) -> T {
    let bound = T::epsilon().powi(-3);
    if p.abs() > bound {
        bound.copysign(p)
    } else {
        p
    }
}
