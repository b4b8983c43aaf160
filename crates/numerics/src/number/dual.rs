//! Numbers with a slope.

use super::Number;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A number with its slope along one variable (forward-mode automatic differentiation).
///
/// A dual number of dual numbers has a second derivative: `x.slope.slope`, where `x.value.slope` and `x.slope.value`
/// are both the first.
///
/// # Numerics
/// * Each operation adds a few roundings to the slope, so that its error is a few ulp wherever the terms of its sum
///   do not cancel. The slope of $\tanh$ is $1 - \tanh^2$, whose relative error grows where it is close to zero.
/// * At a kink the slope is that of the side that [`Number::if_less`] takes: $|x|$ has slope 1 at 0.
/// * Where $\ln$, $\sqrt{x}$ or a power is infinitely steep, a number with slope 0 keeps slope 0. The square root of
///   the constant 0 is an example.
/// * Where an intermediate result overflows, the slope may be NaN although the value is finite. An example is
///   $1 / (1 + e^{-x})$ at -100 in `f32`; [`Number::sigmoid`] has a slope there.
#[derive(Clone, Copy, Debug)]
#[doc(alias = "jvp")]
#[doc(alias = "autodiff")]
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
        dual(value, N::of(0.0))
    }

    /// The variable itself: slope 1.
    #[inline(always)]
    pub fn variable(value: N) -> Self {
        dual(value, N::of(1.0))
    }
}

#[inline(always)]
fn dual<N>(value: N, slope: N) -> Dual<N> {
    Dual { value, slope }
}

/// The chain rule, `steepness * slope`, but 0 where `slope` is 0 and the steepness infinite or NaN.
#[inline(always)]
fn chain<N: Number>(steepness: N, slope: N) -> N {
    let (zero, product) = (N::of(0.0), steepness * slope);
    // A slope that is neither below nor above zero is zero or NaN, and stays so.
    let unless_zero = slope.if_less(zero, product, zero.if_less(slope, product, slope));
    let infinity = N::of(f64::INFINITY);
    steepness.abs().if_less(infinity, product, unless_zero)
}

impl<N: Number> Add for Dual<N> {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        dual(self.value + other.value, self.slope + other.slope)
    }
}

impl<N: Number> Sub for Dual<N> {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        dual(self.value - other.value, self.slope - other.slope)
    }
}

impl<N: Number> Mul for Dual<N> {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        let slope = self.slope * other.value + self.value * other.slope;
        dual(self.value * other.value, slope)
    }
}

impl<N: Number> Div for Dual<N> {
    type Output = Self;

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        let value = self.value / other.value;
        dual(value, (self.slope - value * other.slope) / other.value)
    }
}

impl<N: Number> Neg for Dual<N> {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        dual(-self.value, -self.slope)
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
        dual(value, value * self.slope)
    }

    #[inline(always)]
    fn ln(self) -> Self {
        dual(self.value.ln(), chain(self.value.recip(), self.slope))
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        let value = self.value.sqrt();
        dual(value, chain(N::of(0.5) / value, self.slope))
    }

    #[inline(always)]
    fn tanh(self) -> Self {
        let value = self.value.tanh();
        dual(value, (N::of(1.0) - value.square()) * self.slope)
    }

    #[inline(always)]
    fn sin(self) -> Self {
        dual(self.value.sin(), self.value.cos() * self.slope)
    }

    #[inline(always)]
    fn cos(self) -> Self {
        dual(self.value.cos(), -self.value.sin() * self.slope)
    }

    #[inline(always)]
    fn abs(self) -> Self {
        let slope = (self.value).if_less(N::of(0.0), -self.slope, self.slope);
        dual(self.value.abs(), slope)
    }

    #[inline(always)]
    fn powf(self, exponent: Self) -> Self {
        let (x, p, zero) = (self.value, exponent.value, N::of(0.0));
        let value = x.powf(p);
        let by_base = chain(p * x.powf(p - N::of(1.0)), self.slope);
        let by_exponent = zero.if_less(x, x.ln() * value, zero);
        dual(value, by_base + chain(by_exponent, exponent.slope))
    }

    #[inline(always)]
    fn if_less(self, other: Self, then: Self, otherwise: Self) -> Self {
        let (a, b) = (self.value, other.value);
        let value = a.if_less(b, then.value, otherwise.value);
        dual(value, a.if_less(b, then.slope, otherwise.slope))
    }
}
