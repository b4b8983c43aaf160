//! Functions of one number that are written once: on a [`Value`] they give values, on a [`Dual`] slopes as well.
//!
//! A function that is generic over [`Number`] compiles to straight-line code without branches. Inside a
//! [`Task`](crate::instructions::Task) the loop around it runs on whole registers of the processor's instruction set.
//! The function must be `#[inline(always)]` like everything in a task.
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

use crate::Real;
use crate::elementary::arithmetic::Arithmetic;
use crate::elementary::exponential::exponential;
use crate::elementary::hyperbolic_tangent::tanh;
use crate::elementary::logarithm::ln;
use crate::elementary::power::power;
use crate::elementary::trigonometry::of_bounded;
use std::fmt;
use std::marker::PhantomData;
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

    /// $\ln(1 + e^x)$, without overflow in value or slope. Its absolute error is small, its relative error is not
    /// where the result is close to zero.
    #[inline(always)]
    fn softplus(self) -> Self {
        let e = (-self.abs()).exp();
        self.max(Self::of(0.0)) + (Self::of(1.0) + e).ln()
    }
}

/// A number in the arithmetic of an instruction set.
pub struct Value<T, A>(T, PhantomData<A>);

impl<T: Real, A: Arithmetic> Value<T, A> {
    /// The number `x`.
    #[inline(always)]
    pub fn new(x: T) -> Self {
        Self(x, PhantomData)
    }

    /// The number without its arithmetic.
    #[inline(always)]
    pub fn get(self) -> T {
        self.0
    }
}

impl<T: Copy, A> Copy for Value<T, A> {}

impl<T: Copy, A> Clone for Value<T, A> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: fmt::Debug, A> fmt::Debug for Value<T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Value").field(&self.0).finish()
    }
}

/// Implements an operator on the numbers inside.
macro_rules! operator {
    ($($Operator:ident, $method:ident);*) => {$(
        impl<T: Real, A: Arithmetic> $Operator for Value<T, A> {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self::new(self.0.$method(other.0))
            }
        }
    )*};
}

operator!(Add, add; Sub, sub; Mul, mul; Div, div);

impl<T: Real, A: Arithmetic> Neg for Value<T, A> {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        Self::new(-self.0)
    }
}

impl<T: Real, A: Arithmetic> Number for Value<T, A> {
    #[inline(always)]
    fn of(x: f64) -> Self {
        Self::new(T::of(x))
    }

    #[inline(always)]
    fn exp(self) -> Self {
        Self::new(exponential::<T, A>(self.0, T::zero()))
    }

    #[inline(always)]
    fn ln(self) -> Self {
        Self::new(ln::<T, A>(self.0))
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        Self::new(self.0.sqrt())
    }

    #[inline(always)]
    fn tanh(self) -> Self {
        Self::new(tanh::<T, A>(self.0))
    }

    #[inline(always)]
    fn sin(self) -> Self {
        Self::new(of_bounded::<T, A>(self.0).0)
    }

    #[inline(always)]
    fn cos(self) -> Self {
        Self::new(of_bounded::<T, A>(self.0).1)
    }

    #[inline(always)]
    fn abs(self) -> Self {
        Self::new(self.0.abs())
    }

    #[inline(always)]
    fn powf(self, exponent: Self) -> Self {
        Self::new(power::<T, A>(self.0, exponent.0))
    }

    #[inline(always)]
    fn if_less(self, other: Self, then: Self, otherwise: Self) -> Self {
        if self.0 < other.0 { then } else { otherwise }
    }
}

/// A number with its slope along one variable (forward-mode automatic differentiation).
///
/// # Numerics
/// Where a function has a kink, the slope is that of the side that [`Number::if_less`] chooses: $|x|$ has slope 1 at 0.
/// Where a function is infinitely steep, a number with slope zero keeps slope zero: $\sqrt{x}$ of a constant 0.
#[derive(Clone, Copy, Debug)]
#[doc(alias = "jvp")]
pub struct Dual<N> {
    /// The number.
    pub value: N,
    /// Its derivative by the variable.
    pub slope: N,
}

impl<N: Number> Dual<N> {
    /// A number that does not depend on the variable: slope 0.
    #[inline(always)]
    pub fn constant(value: N) -> Self {
        let slope = N::of(0.0);
        Self { value, slope }
    }

    /// The variable itself: slope 1.
    #[inline(always)]
    pub fn variable(value: N) -> Self {
        let slope = N::of(1.0);
        Self { value, slope }
    }
}

/// The chain rule, `steepness * slope`, but zero where `slope` is zero and the steepness infinite or NaN.
#[inline(always)]
fn chain<N: Number>(steepness: N, slope: N) -> N {
    let (zero, product) = (N::of(0.0), steepness * slope);
    // What is neither below nor above zero is zero or NaN, and stays so.
    let unless_zero = slope.if_less(zero, product, zero.if_less(slope, product, slope));
    let infinity = N::of(f64::INFINITY);
    steepness.abs().if_less(infinity, product, unless_zero)
}

impl<N: Number> Add for Dual<N> {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let (value, slope) = (self.value + other.value, self.slope + other.slope);
        Self { value, slope }
    }
}

impl<N: Number> Sub for Dual<N> {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        let (value, slope) = (self.value - other.value, self.slope - other.slope);
        Self { value, slope }
    }
}

impl<N: Number> Mul for Dual<N> {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        let value = self.value * other.value;
        let slope = self.slope * other.value + self.value * other.slope;
        Self { value, slope }
    }
}

impl<N: Number> Div for Dual<N> {
    type Output = Self;

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        let value = self.value / other.value;
        let slope = (self.slope - value * other.slope) / other.value;
        Self { value, slope }
    }
}

impl<N: Number> Neg for Dual<N> {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        let (value, slope) = (-self.value, -self.slope);
        Self { value, slope }
    }
}

impl<N: Number> Number for Dual<N> {
    #[inline(always)]
    fn of(x: f64) -> Self {
        Self::constant(N::of(x))
    }

    #[inline(always)]
    fn exp(self) -> Self {
        let value = self.value.exp();
        let slope = value * self.slope;
        Self { value, slope }
    }

    #[inline(always)]
    fn ln(self) -> Self {
        let value = self.value.ln();
        let slope = chain(self.value.recip(), self.slope);
        Self { value, slope }
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        let value = self.value.sqrt();
        let slope = chain(N::of(0.5) / value, self.slope);
        Self { value, slope }
    }

    #[inline(always)]
    fn tanh(self) -> Self {
        let value = self.value.tanh();
        let slope = (N::of(1.0) - value.square()) * self.slope;
        Self { value, slope }
    }

    #[inline(always)]
    fn sin(self) -> Self {
        let (value, steepness) = (self.value.sin(), self.value.cos());
        let slope = steepness * self.slope;
        Self { value, slope }
    }

    #[inline(always)]
    fn cos(self) -> Self {
        let (value, steepness) = (self.value.cos(), -self.value.sin());
        let slope = steepness * self.slope;
        Self { value, slope }
    }

    #[inline(always)]
    fn abs(self) -> Self {
        let slope = (self.value).if_less(N::of(0.0), -self.slope, self.slope);
        let value = self.value.abs();
        Self { value, slope }
    }

    #[inline(always)]
    fn powf(self, exponent: Self) -> Self {
        let (x, p) = (self.value, exponent.value);
        let (value, zero) = (x.powf(p), N::of(0.0));
        let by_base = p * x.powf(p - N::of(1.0));
        let by_exponent = zero.if_less(x, x.ln() * value, zero);
        let slope = chain(by_base, self.slope) + chain(by_exponent, exponent.slope);
        Self { value, slope }
    }

    #[inline(always)]
    fn if_less(self, other: Self, then: Self, otherwise: Self) -> Self {
        let (a, b) = (self.value, other.value);
        let value = a.if_less(b, then.value, otherwise.value);
        let slope = a.if_less(b, then.slope, otherwise.slope);
        Self { value, slope }
    }
}
