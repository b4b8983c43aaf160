//! Functions of one number that are written once: on a [`Value`] they give values, on a [`Dual`] slopes as well.
//!
//! A function that is generic over [`Number`] compiles to straight-line code without branches. Inside a
//! [`Task`](crate::instructions::Task) the loop around it runs on whole registers of the processor's instruction set.
//! The function must be `#[inline(always)]` like everything in a task.
//!
//! # Numerics
//!
//! Bounds on the error in units in the last place, on every instruction set, and in brackets the largest error found
//! among a million numbers over the whole range.
//!
//! | | `f32` | `f64` |
//! |---|---|---|
//! | `+`, `-`, `*`, `/`, [`sqrt`](Number::sqrt) | 0.5 | 0.5 |
//! | [`exp`](Number::exp) | 1 (0.91) | 1 (0.85) |
//! | [`ln`](Number::ln) | 1.5 (0.83) | 1.5 (0.75) |
//! | [`sin`](Number::sin), [`cos`](Number::cos) | 1 (0.93) | 1 (0.84) |
//! | [`tanh`](Number::tanh) | 3 (2.3) | 3 (2.3) |
//! | [`powf`](Number::powf) | 1 (0.92) | 1.5 (0.85) |
//! | [`sigmoid`](Number::sigmoid) | 3 (2.6) | 3 (2.6) |
//!
//! A result depends on its argument and on the instruction set alone: not on the position in a slice, nor on the
//! thread. A product is rounded before something is added to it. [`Dual`] lists the errors of slopes.
//!
//! # Example
//!
//! ```
//! use bochner_numerics::instructions::{Arithmetic, Task, run};
//! use bochner_numerics::{Dual, Number, Value};
//!
//! /// A logit that cannot exceed 30.
//! #[inline(always)]
//! fn capped<N: Number>(logit: N) -> N {
//!     let cap = N::of(30.0);
//!     cap * (logit / cap).tanh()
//! }
//!
//! struct Slopes<'a>(&'a mut [f32]);
//!
//! impl Task for Slopes<'_> {
//!     #[inline(always)]
//!     fn run<A: Arithmetic>(self, _: A) {
//!         for x in self.0 {
//!             *x = capped(Dual::variable(Value::<f32, A>::new(*x))).slope.get();
//!         }
//!     }
//! }
//!
//! let mut x = [0.0, 1e3];
//! run(Slopes(&mut x));
//! assert_eq!(x, [1.0, 0.0]);
//! ```

mod dual;
mod value;

pub use dual::Dual;
pub use value::Value;

use std::ops::{Add, Div, Mul, Neg, Sub};

/// A number that functions are computed on: a [`Value`], or a [`Dual`] with its slope.
///
/// See the [module](self) for an example and the errors.
pub trait Number:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// The constant `x`.
    fn of(x: f64) -> Self;

    /// $e^x$.
    fn exp(self) -> Self;

    /// The natural logarithm: minus infinity at zero, NaN below.
    fn ln(self) -> Self;

    /// The square root; NaN below zero.
    fn sqrt(self) -> Self;

    /// The hyperbolic tangent.
    fn tanh(self) -> Self;

    /// The sine. A finite angle beyond $2^{17}$ (`f32`) or $2^{20}$ (`f64`) counts as that bound with the angle's
    /// sign; an infinite angle gives NaN.
    fn sin(self) -> Self;

    /// The cosine, with the bounds of [`sin`](Self::sin).
    fn cos(self) -> Self;

    /// The absolute value.
    fn abs(self) -> Self;

    /// $x^p$ for $x \ge 0$; NaN below zero, even where the exponent is an integer.
    fn powf(self, exponent: Self) -> Self;

    /// `then` where `self < other`, and `otherwise` elsewhere. NaN compares false.
    #[doc(alias = "where")]
    #[doc(alias = "select")]
    fn if_less(self, other: Self, then: Self, otherwise: Self) -> Self;

    /// The smaller number. Where the two are equal or either is NaN, it is `self`.
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        other.if_less(self, other, self)
    }

    /// The larger number. Where the two are equal or either is NaN, it is `self`.
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        self.if_less(other, other, self)
    }

    /// $x^2$.
    #[inline(always)]
    fn square(self) -> Self {
        self * self
    }

    /// $1 / x$.
    #[inline(always)]
    fn recip(self) -> Self {
        Self::of(1.0) / self
    }

    /// The logistic function $1 / (1 + e^{-x})$, without overflow in value or slope.
    #[inline(always)]
    fn sigmoid(self) -> Self {
        let e = (-self.abs()).exp();
        let of_absolute = (Self::of(1.0) + e).recip();
        self.if_less(Self::of(0.0), e * of_absolute, of_absolute)
    }

    /// $\ln(1 + e^x)$, without overflow in value or slope. The error is at most two epsilons times the larger of 1 and
    /// the result; small results have a large relative error.
    #[inline(always)]
    fn softplus(self) -> Self {
        let e = (-self.abs()).exp();
        self.max(Self::of(0.0)) + (Self::of(1.0) + e).ln()
    }
}
