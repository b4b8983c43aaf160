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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Real;
    use crate::elementary::accuracy::{self, Pair, largest_error, log_uniform, on_every_set};

    /// The largest error over the bases between the bounds whose power is an ordinary number.
    fn error<T: Lane + Real>(p: f64, from: f64, to: f64, logarithms: (f64, f64)) -> f64 {
        let mut x: Vec<T> = log_uniform(from, to, 3_000);
        x.retain(|x| (logarithms.0..logarithms.1).contains(&(p * x.as_f64().ln())));
        assert!(!x.is_empty());
        largest_error(Power::new(T::of(p)), &x, |x| {
            [accuracy::exp(
                Pair::from(T::of(p).as_f64()) * accuracy::ln(x.as_f64()),
            )]
        })
    }

    #[test]
    #[cfg_attr(miri, ignore = "a sweep over safe code")]
    fn errors_are_below_the_bound() {
        for p in [0.003, 0.5, 1.0, -1.7, 2.0, 13.3, -40.0] {
            for (from, to) in [(1e-43, 1e38), (0.5, 2.0), (1.0 - 1e-5, 1.0 + 1e-5)] {
                assert!(error::<f32>(p, from, to, (-103.9, 88.7)) < 1.0);
            }
            for (from, to) in [(1e-322, 1e308), (0.5, 2.0), (1.0 - 1e-13, 1.0 + 1e-13)] {
                assert!(error::<f64>(p, from, to, (-745.0, 709.7)) < 1.5);
            }
        }
        // Bases between the roots of 1/2 and 2, whose exponent is zero, to the largest powers.
        for p in [-2e3, 2e3] {
            assert!(error::<f32>(p / 8.0, 0.71, 1.41, (-103.9, 88.7)) < 1.0);
            assert!(error::<f64>(p, 0.71, 1.41, (-745.0, 709.7)) < 1.5);
        }
        // Bases within 2^-13 (`f32`) and 2^-43 (`f64`) of 1, with the largest powers whose results are finite.
        assert!(error::<f32>(7e5, 1.0 - 1e-4, 1.0 + 1e-4, (-103.9, 88.7)) < 1.0);
        assert!(error::<f64>(6e15, 1.0 - 1e-13, 1.0 + 1e-13, (-745.0, 709.7)) < 1.5);
    }

    fn the_ends_are_exact<T: Real>() {
        let inf = T::infinity();
        let x = [T::zero(), -T::zero(), T::one(), inf, T::max_value()];
        let x = [&x[..], &[-T::one(), T::neg_infinity(), T::nan()]].concat();
        for (p, want) in [
            (T::of(2.5), [T::zero(), T::zero(), T::one(), inf, inf]),
            (T::of(-3e7), [inf, inf, T::one(), T::zero(), T::zero()]),
            (inf, [T::zero(), T::zero(), T::one(), inf, inf]),
            (T::of(-2.5), [inf, inf, T::one(), T::zero(), T::zero()]),
            (T::min_value(), [inf, inf, T::one(), T::zero(), T::zero()]),
            (T::zero(), [T::one(); 5]),
        ] {
            for (set, [y]) in on_every_set(Power::new(p), &x) {
                assert_eq!(y[..5], want, "{set:?}, {p}");
                assert!(y[5..].iter().all(|y| y.is_nan()), "{set:?}, {p}");
            }
        }
        // The power of the largest number is finite here, the power of infinity is not.
        for (p, want) in [(T::of(0.3), inf), (T::of(-0.3), T::zero())] {
            for (set, [y]) in on_every_set(Power::new(p), &[inf, T::max_value()]) {
                assert_eq!(y[0], want, "{set:?}, {p}");
                assert!(y[1] > T::zero() && y[1] < inf, "{set:?}, {p}");
            }
        }
    }

    #[test]
    fn the_ends_of_the_range_are_exact() {
        the_ends_are_exact::<f32>();
        the_ends_are_exact::<f64>();
    }
}
